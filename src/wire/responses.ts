/**
 * OpenAI `POST /v1/responses`, without a memory: every request brings its whole history. Always translated, since no local
 * engine does this endpoint as its clients expect.
 */
import { RouterError } from '../domain/errors'
import { encode } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, ReplyTransform } from './exchange'
import { jobOf } from './job'
import { parseBody } from './json/values'
import { askChat, readerFor } from './node-side'
import { rejectionOf } from './rejection'
import { createRepair } from './repair/repair'
import type { ResponsesFacts } from './responses-peek'
import { peekResponses } from './responses-peek'
import { readResponses } from './responses-request'
import type { ResponsesStreamWriter } from './responses-writer'
import { createResponsesStreamWriter, createResponsesWholeWriter, notBegun } from './responses-writer'
import { translate } from './translate'

const maxSessionLength = 256

/** Proxies count any byte as life; some clients count only events, so one of these follows. */
const comment = ': waiting\n\n'

/** The client's own key for the conversation says more than the conversation's beginning. */
const named = (arrival: Arrival, { cacheKey }: ResponsesFacts): Arrival => {
  const session = arrival.context.session ?? cacheKey?.slice(0, maxSessionLength)
  return session === undefined ? arrival : { ...arrival, context: { ...arrival.context, session } }
}

const decode = (arrival: Arrival): Exchange => {
  const facts = peekResponses(arrival.body)
  const kind = { dialect: 'openai', operation: 'openai.responses', streams: false } as const
  const job = jobOf(named(arrival, facts), facts.body, kind)
  const { chat, toolbox, echo } = readResponses(parseBody(facts.body.body))
  const created = Math.floor(job.arrivedAt / 1_000)
  const answer = { request: job.id, created, model: job.asked, toolbox, echo }

  /** What the client hears while no node has begun to answer. */
  const waiting = createResponsesStreamWriter(answer, () => notBegun)
  let live: { readonly writer: ResponsesStreamWriter; readonly transform: ReplyTransform } | undefined
  /** Of an attempt that failed before it was heard, nothing counts. */
  const heard = (): ResponsesStreamWriter =>
    live?.transform.begun() && live.transform.problem() === undefined ? live.writer : waiting

  const failed = (writer: ResponsesStreamWriter, error: RouterError): string =>
    writer.fail(error.with({ requestId: job.id }))

  return {
    job,
    request: (target) => askChat(chat, job, target),
    reply(request) {
      const writer = createResponsesStreamWriter(answer, waiting.progress)
      const transform = translate({
        contentType: job.stream ? 'text/event-stream' : 'application/json',
        ...readerFor(request, job),
        writer: job.stream ? writer : createResponsesWholeWriter(answer),
        errorText: (message) => failed(writer, new RouterError('upstream_failed', message)),
        ...(arrival.repairToolCalls && { repair: createRepair(toolbox.functions) }),
      })
      live = { writer, transform }
      return transform
    },
    rejection: (request, status, body) => rejectionOf('openai', job.id, request.dialect === 'openai', status, body),
    // The blank line first ends whatever half event stands before it.
    inBandError: (error) => encode(`\n\n${failed(heard(), error)}`),
    ...(job.stream && { keepAlive: () => encode(comment + heard().wait()) }),
  }
}

export const responsesRoute: InferenceRoute = { method: 'POST', path: '/v1/responses', decode }
