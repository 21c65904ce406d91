/** The OpenAI dialect: `POST /v1/chat/completions`. */
import { RouterError } from '../domain/errors'
import type { Job } from '../domain/job'
import { encode, splice } from './bytes'
import type { Arrival, Dialect } from './dialect'
import { askForUsage, lacksUsage, renameModel } from './edits'
import { errorBody, errorResponse } from './errors'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import { invalid, parseBody } from './json/values'
import { createWholeFramer } from './lines'
import { createNdjsonFramer } from './ndjson'
import { createOllamaReader } from './ollama-reader'
import { readOpenAiChat } from './openai-request'
import { createOpenAiStreamWriter, createOpenAiWholeWriter } from './openai-writer'
import type { BodyFacts } from './peek'
import { peek } from './peek'
import { rejectionOf } from './rejection'
import { relayOpenAiStream } from './relay/stream'
import { relayWhole } from './relay/whole'
import { writeOllamaChat } from './to-ollama'
import { translate } from './translate'
import { upstreamRequest } from './upstream'

const path = '/v1/chat/completions'

/** Ollama's own `/v1` cannot set the context window, so Ollama nodes are always spoken to in their native dialect. */
const speaksOpenAi = ({ node, native }: Parameters<Exchange['request']>[0]): boolean =>
  native.includes('openai') && node.kind !== 'ollama'

const relay = (facts: BodyFacts, model: string): UpstreamRequest => {
  const body = splice(facts.body, [...renameModel(facts, model), ...askForUsage(facts)])
  return upstreamRequest('openai', path, body, facts.stream === true)
}

const fromOllama = (job: Job, facts: BodyFacts): ReplyTransform => {
  const answer = {
    request: job.id,
    created: Math.floor(job.arrivedAt / 1_000),
    model: job.asked,
    includeUsage: !lacksUsage(facts),
  }
  return translate({
    contentType: job.stream ? 'text/event-stream' : 'application/json',
    framer: job.stream ? createNdjsonFramer() : createWholeFramer(),
    reader: createOllamaReader(job.id),
    writer: job.stream ? createOpenAiStreamWriter(answer) : createOpenAiWholeWriter(answer),
    errorText: (message) => inBand(job, new RouterError('upstream_failed', message)),
  })
}

const inBand = (job: Job, error: RouterError): string => {
  const body = errorBody('openai', error.with({ requestId: job.id }))
  // The blank line first ends whatever half event stands before it.
  return `\n\ndata: ${JSON.stringify(body)}\n\n`
}

const decode = (arrival: Arrival): Exchange => {
  const facts = peek(arrival.body)
  if (facts.messages === undefined) throw invalid('"messages" is missing.', 'messages')
  if (facts.messages === 0) throw invalid('"messages" is empty.', 'messages')
  const job = jobOf(arrival, facts, { dialect: 'openai', operation: 'openai.chat', streams: false })
  return {
    job,
    request(target) {
      const { node, model, contextTokens } = target
      if (speaksOpenAi(target)) return relay(facts, model)
      const chat = writeOllamaChat(readOpenAiChat(parseBody(facts.body)), {
        model,
        stream: job.stream,
        ...(contextTokens !== undefined && { contextTokens }),
        ...(node.keepAlive !== undefined && { keepAlive: node.keepAlive }),
      })
      return upstreamRequest('ollama', '/api/chat', chat, job.stream)
    },
    reply(request, model) {
      if (request.dialect === 'ollama') return fromOllama(job, facts)
      if (!job.stream) return relayWhole({ contentType: 'application/json', asked: job.asked, model })
      return relayOpenAiStream({ asked: job.asked, model, dropUsage: lacksUsage(facts) })
    },
    rejection: (request, status, body) => rejectionOf('openai', job.id, request.dialect === 'openai', status, body),
    inBandError: (error) => encode(inBand(job, error)),
  }
}

export const openai: Dialect = {
  name: 'openai',
  inference: [{ method: 'POST', path, decode }],
  refuse: (error) => errorResponse('openai', error),
}
