/** The Ollama dialect: its list of endpoints, with `POST /api/chat` and `POST /api/generate`. */
import { RouterError } from '../domain/errors'
import type { Job } from '../domain/job'
import type { ChatRequest } from './canonical'
import { decode as decodeText, encode, splice } from './bytes'
import type { Arrival, Dialect, InferenceRoute } from './dialect'
import { renameModel, settleKeepAlive, settleOptions } from './edits'
import { errorBody, errorResponse } from './errors'
import type { Exchange, OwnAnswer, ReplyTransform, Timing, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import type { Json } from './json/values'
import { booleanAt, parseBody, stringAt } from './json/values'
import { createWholeFramer } from './lines'
import { ollamaEmbeddings } from './ollama-embeddings'
import { readOllamaChat, readOllamaGenerate } from './ollama-request'
import { createOllamaStreamWriter, createOllamaWholeWriter } from './ollama-writer'
import { createOpenAiReader } from './openai-reader'
import { readOpenAiTools } from './openai-request'
import type { BodyFacts } from './body-facts'
import { peek } from './peek'
import { rejectionOf } from './rejection'
import type { Repair } from './repair/repair'
import { repairFor } from './repair/repair'
import { relayOllamaStream } from './relay/stream'
import { relayWhole } from './relay/whole'
import { createSseFramer } from './sse'
import { writeOpenAiChat, writeOpenAiCompletion } from './to-openai'
import { rfc3339 } from './time'
import { translate } from './translate'
import { upstreamRequest } from './upstream'

type Target = Parameters<Exchange['request']>[0]

const wholeType = 'application/json; charset=utf-8'

interface Endpoint {
  readonly path: '/api/chat' | '/api/generate'
  readonly name: 'chat' | 'generate'
  /** Nothing to answer: the request only loads the model, or unloads it. */
  isEmpty(facts: BodyFacts): boolean
  readonly emptyAnswer: Json
  translate(
    body: Json,
    target: { readonly model: string; readonly stream: boolean; readonly request: string },
  ): UpstreamRequest
}

const notSupported = (what: string): RouterError =>
  new RouterError('not_supported', `${what} needs a node that runs Ollama, and this model's node does not.`, {
    hint: 'Use /api/chat or a plain prompt, or serve this model from an Ollama node.',
  })

const toChat = (request: ChatRequest, target: Parameters<Endpoint['translate']>[1]): UpstreamRequest =>
  upstreamRequest('openai', '/v1/chat/completions', writeOpenAiChat(request, target), target.stream)

const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0)

/** A prompt becomes a chat of one turn; one that no template may touch goes to the completions endpoint. */
const translateGenerate: Endpoint['translate'] = (body, target) => {
  for (const name of ['template', 'context']) if (isGiven(body[name])) throw notSupported(`"${name}"`)
  const request = readOllamaGenerate(body)
  if (booleanAt(body, 'raw') !== true) {
    if (isGiven(body.suffix)) throw notSupported('"suffix"')
    return toChat(request, target)
  }
  const suffix = stringAt(body, 'suffix')
  const raw = { prompt: stringAt(body, 'prompt') ?? '', ...(isGiven(suffix) && suffix !== undefined && { suffix }) }
  return upstreamRequest('openai', '/v1/completions', writeOpenAiCompletion(request, raw, target), target.stream)
}

const chat: Endpoint = {
  path: '/api/chat',
  name: 'chat',
  isEmpty: ({ messages }) => messages === undefined || messages === 0,
  emptyAnswer: { message: { role: 'assistant', content: '' } },
  translate: (body, target) => toChat(readOllamaChat(body), target),
}

const generate: Endpoint = {
  path: '/api/generate',
  name: 'generate',
  isEmpty: ({ promptBytes, images }) => promptBytes === 0 && images === 0,
  emptyAnswer: { response: '' },
  translate: translateGenerate,
}

const relay = (endpoint: Endpoint, job: Job, facts: BodyFacts, target: Target): UpstreamRequest => {
  const body = splice(facts.body, [
    ...renameModel(facts, target.model),
    ...settleOptions(facts, target.contextTokens),
    // Without a prompt the request says nothing but how long the model is to stay.
    ...(endpoint.isEmpty(facts) ? [] : settleKeepAlive(facts, target.node.keepAlive)),
  ])
  return upstreamRequest('ollama', endpoint.path, body, job.stream)
}

const inBand = (job: Job, error: RouterError): string =>
  // The line end first ends whatever half line stands before it.
  `\n${JSON.stringify(errorBody('ollama', error.with({ requestId: job.id })))}\n`

const fromOpenAi = (endpoint: Endpoint, job: Job, timing: Timing, repair: Repair | undefined): ReplyTransform => {
  const answer = { model: job.asked, endpoint: endpoint.name, timing }
  return translate({
    contentType: job.stream ? 'application/x-ndjson' : wholeType,
    framer: job.stream ? createSseFramer() : createWholeFramer(),
    reader: createOpenAiReader(job.id),
    writer: job.stream ? createOllamaStreamWriter(answer) : createOllamaWholeWriter(answer),
    errorText: (message) => inBand(job, new RouterError('upstream_failed', message)),
    repair,
  })
}

/** `keep_alive` of nothing, with or without a unit. */
const isZero = ({ body, keepAlive }: BodyFacts): boolean =>
  keepAlive !== undefined && /^"?0+(\.0*)?[a-z]*"?$/.test(decodeText(body.subarray(keepAlive.start, keepAlive.end)))

const done = (endpoint: Endpoint, job: Job, reason: 'load' | 'unload'): OwnAnswer => {
  const created = { model: job.asked, created_at: rfc3339(job.arrivedAt) }
  const text = JSON.stringify({ ...created, ...endpoint.emptyAnswer, done: true, done_reason: reason })
  return { contentType: wholeType, body: encode(text) }
}

const decode = (endpoint: Endpoint, arrival: Arrival): Exchange => {
  const facts = peek(arrival.body)
  const described = jobOf(arrival, facts, { dialect: 'ollama', operation: `ollama.${endpoint.name}`, streams: true })
  const empty = endpoint.isEmpty(facts)
  const job: Job = empty ? { ...described, needs: [] } : described
  const unloads = empty && isZero(facts)
  return {
    job,
    ...(unloads && { unloaded: done(endpoint, job, 'unload') }),
    loaded: (native) => (empty && !unloads && !native.includes('ollama') ? done(endpoint, job, 'load') : undefined),
    request(target) {
      if (target.native.includes('ollama')) return relay(endpoint, job, facts, target)
      if (empty) throw notSupported('Unloading a model')
      return endpoint.translate(parseBody(facts.body), { model: target.model, stream: job.stream, request: job.id })
    },
    reply(request, model, timing) {
      if (request.dialect === 'openai')
        return fromOpenAi(endpoint, job, timing, repairFor(arrival, facts, readOpenAiTools))
      if (!job.stream) return relayWhole({ contentType: wholeType, asked: job.asked, model })
      return relayOllamaStream({ asked: job.asked, model, dropUsage: false })
    },
    rejection: (request, status, body) => rejectionOf('ollama', job.id, request.dialect === 'ollama', status, body),
    inBandError: (error) => encode(inBand(job, error)),
  }
}

const route = (endpoint: Endpoint): InferenceRoute => ({
  method: 'POST',
  path: endpoint.path,
  decode: (arrival) => decode(endpoint, arrival),
})

export const ollama: Dialect = {
  name: 'ollama',
  inference: [route(chat), route(generate), ...ollamaEmbeddings],
  refuse: (error) => errorResponse('ollama', error),
}
