/** The Anthropic dialect: `POST /v1/messages`, and the count of its tokens. */
import { RouterError } from '../domain/errors'
import type { Job } from '../domain/job'
import type { AnthropicFacts } from './anthropic-peek'
import { peekAnthropic } from './anthropic-peek'
import { readAnthropic, readAnthropicTools } from './anthropic-request'
import { createAnthropicStreamWriter, createAnthropicWholeWriter } from './anthropic-writer'
import { encode, splice } from './bytes'
import type { Arrival, Dialect } from './dialect'
import { renameModel } from './edits'
import { errorBody, errorResponse } from './errors'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { estimateTokens, jobOf } from './job'
import { invalid, parseBody } from './json/values'
import type { Target } from './node-side'
import { askChat, readerFor } from './node-side'
import { rejectionOf } from './rejection'
import type { Repair } from './repair/repair'
import { repairFor } from './repair/repair'
import { tellStopSequence } from './relay/anthropic-form'
import { relayAnthropicStream } from './relay/stream'
import { relayWhole } from './relay/whole'
import { hashText } from './session'
import { writeOpenAiChat } from './to-openai'
import type { CountablePrompt } from './token-count'
import { translate } from './translate'
import { upstreamRequest } from './upstream'

const path = '/v1/messages'
const version = '2023-06-01'
const wholeType = 'application/json'
const maxSessionLength = 256

const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

const ping = encode(event('ping', { type: 'ping' }))

/** The blank line first ends whatever half event stands before it. */
const inBand = (job: Job, error: RouterError): string =>
  `\n\n${event('error', errorBody('anthropic', error.with({ requestId: job.id })))}`

/** Claude Code's user id holds its session's, in one of two forms. */
const sessionInUserId = /_session_([\w-]+)$|"session_id":"([\w-]+)"/
/** The end of a user id that is searched: the search may take the square of its length. */
const searchedLength = 1_024

/** The session that the client names. A user is none by name alone, and is not to be read in records. */
const sessionOf = (headers: Headers, userId: string | undefined): string | undefined => {
  const named = headers.get('x-claude-code-session-id')?.trim()
  if (named) return named.slice(0, maxSessionLength)
  if (userId === undefined) return undefined
  const found = sessionInUserId.exec(userId.slice(-searchedLength))
  const session = found?.[1] ?? found?.[2]
  return session?.slice(0, maxSessionLength) ?? `user_${hashText(userId)}`
}

const describe = (arrival: Arrival, { body, withoutBilling, userId }: AnthropicFacts): Job => {
  const { headers, context, keepBillingHeader = false } = arrival
  const session = context.session ?? sessionOf(headers, userId)
  const named = session === undefined ? arrival : { ...arrival, context: { ...context, session } }
  const job = jobOf(named, body, { dialect: 'anthropic', operation: 'anthropic.messages', streams: false })
  return withoutBilling.length === 0 || keepBillingHeader ? job : { ...job, billingHeaderRemoved: true }
}

/** For a node that speaks this dialect itself: the client's own bytes, as far as they may go there. */
const relay = ({ body, withoutBilling }: AnthropicFacts, job: Job, model: string): UpstreamRequest => {
  const edits = [...renameModel(body, model), ...(job.billingHeaderRemoved ? withoutBilling : [])]
  const request = upstreamRequest('anthropic', path, splice(body.body, edits), job.stream)
  // Flags for features in trial stay here: engines refuse those that they do not know.
  return { ...request, headers: { ...request.headers, 'anthropic-version': version } }
}

/** In an answer in one piece the arguments of calls are objects, and never broken. */
const relayed = (job: Job, model: string, repair: Repair | undefined): ReplyTransform =>
  job.stream
    ? relayAnthropicStream({ asked: job.asked, model, dropUsage: false, repair })
    : relayWhole({ contentType: wholeType, asked: job.asked, model, form: tellStopSequence })

const translated = (job: Job, request: UpstreamRequest, repair: Repair | undefined): ReplyTransform => {
  const answer = { request: job.id, model: job.asked, promptTokens: job.promptTokens.value }
  return translate({
    contentType: job.stream ? 'text/event-stream' : wholeType,
    ...readerFor(request, job),
    writer: job.stream ? createAnthropicStreamWriter(answer) : createAnthropicWholeWriter(answer),
    errorText: (message) => inBand(job, new RouterError('upstream_failed', message)),
    repair,
  })
}

const peekMessages = (body: Uint8Array): AnthropicFacts => {
  const facts = peekAnthropic(body)
  if (facts.body.messages === undefined) throw invalid('"messages" is missing.', 'messages')
  if (facts.body.messages === 0) throw invalid('"messages" is empty.', 'messages')
  return facts
}

const decode = (arrival: Arrival): Exchange => {
  const facts = peekMessages(arrival.body)
  const job = describe(arrival, facts)
  const translateFor = (target: Target): UpstreamRequest => {
    const chat = readAnthropic(parseBody(facts.body.body), { keepBilling: job.billingHeaderRemoved !== true })
    return askChat(chat, job, target)
  }
  return {
    job,
    request: (target) =>
      facts.isPlain && target.native.includes('anthropic') ? relay(facts, job, target.model) : translateFor(target),
    reply(request, model) {
      const repair = repairFor(arrival, facts.body, readAnthropicTools)
      return request.dialect === 'anthropic' ? relayed(job, model, repair) : translated(job, request, repair)
    },
    // Even engines with this dialect shape their errors as OpenAI does.
    rejection: (_, status, body) => rejectionOf('anthropic', job.id, false, status, body),
    inBandError: (error) => encode(inBand(job, error)),
    ...(job.stream && { keepAlive: () => ping }),
  }
}

/** A body of `POST /v1/messages/count_tokens` as it was read. */
export interface TokenQuestion {
  readonly model: string
  /** Tokens, by the model's own bytes per token where these were measured. */
  readonly estimate: number
  /** For an engine to count. Absent with pictures: engines count their place in the text only. */
  readonly prompt?: CountablePrompt
}

export interface TokenCountOptions {
  readonly bytesPerToken?: ((model: string) => number | undefined) | undefined
  /** Count Claude Code's billing header too: it is sent to nodes. */
  readonly keepBillingHeader?: boolean
}

/** Reads what tokens are to be counted of. Throws `invalid_request`. */
export const readTokenQuestion = (
  bytes: Uint8Array,
  { bytesPerToken, keepBillingHeader = false }: TokenCountOptions = {},
): TokenQuestion => {
  const facts = peekMessages(bytes)
  const { body } = facts
  const estimate = estimateTokens(body, bytesPerToken?.(body.model))
  return { model: body.model, estimate, ...(body.images === 0 && { prompt: promptOf(facts, keepBillingHeader) }) }
}

const promptOf = ({ body, withoutBilling, isPlain }: AnthropicFacts, keepBilling: boolean): CountablePrompt => ({
  ...(isPlain && {
    anthropic: (model) => ({ ...parseBody(splice(body.body, keepBilling ? [] : withoutBilling)), model }),
  }),
  chat: (model) =>
    writeOpenAiChat(readAnthropic(parseBody(body.body), { keepBilling }), { model, stream: false, request: 'count' }),
})

export const anthropic: Dialect = {
  name: 'anthropic',
  inference: [{ method: 'POST', path, decode }],
  refuse: (error) => errorResponse('anthropic', error),
}
