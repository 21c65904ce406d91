/** Ollama's `POST /api/embed`, and the older `POST /api/embeddings` for one text. */
import type { Job } from '../domain/job'
import { encode, splice } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import { renameModel, settleKeepAlive, settleOptions } from './edits'
import type { EmbeddingInput } from './embedding-input'
import { inputReader, textsOf } from './embedding-input'
import type { Embedded } from './embeddings-answer'
import { embeddingsAnswer } from './embeddings-answer'
import { errorBody } from './errors'
import type { Exchange, OwnAnswer, Timing, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import { skip } from './json/cursor'
import type { Json } from './json/values'
import { compact, invalid, numberAt, parseBody } from './json/values'
import type { Target } from './node-side'
import type { BodyFacts } from './body-facts'
import { peek } from './peek'
import { rejectionOf } from './rejection'
import { nanoseconds } from './time'
import { upstreamRequest } from './upstream'

interface Endpoint {
  readonly path: '/api/embed' | '/api/embeddings'
  readonly name: 'embed' | 'embeddings'
  /** Its member for the text, and the other endpoint's, which clients mix up. */
  readonly member: 'input' | 'prompt'
  readonly other: 'input' | 'prompt'
}

const embed: Endpoint = { path: '/api/embed', name: 'embed', member: 'input', other: 'prompt' }
const embeddings: Endpoint = { path: '/api/embeddings', name: 'embeddings', member: 'prompt', other: 'input' }

/** Of one text the older endpoint takes no list. */
const asPrompt = (given: unknown): string => {
  const [only = '', ...more] = textsOf(given, 'input')
  if (more.length > 0) throw invalid('/api/embeddings takes one text; send several to /api/embed.', 'input')
  return only
}

/** The other endpoint's member under the name that this one knows: engines answer an unknown one with no vector. */
const mapped = ({ member, other }: Endpoint, body: Uint8Array): Uint8Array => {
  const { [other]: given, ...rest } = parseBody(body)
  return encode(JSON.stringify({ ...rest, [member]: member === 'prompt' ? asPrompt(given) : given }))
}

interface Asked {
  readonly facts: BodyFacts
  readonly input: EmbeddingInput
}

const read = (endpoint: Endpoint, body: Uint8Array): Asked => {
  const input: EmbeddingInput = { count: 0, bytes: 0, hasTokens: false }
  const own = inputReader(input)
  let given = false
  let mixedUp = false
  const facts = peek(body, {
    [endpoint.member]: (cursor, draft) => {
      given = true
      own(cursor, draft)
    },
    [endpoint.other]: (cursor) => {
      mixedUp = true
      skip(cursor)
    },
  })
  return mixedUp && !given ? read(endpoint, mapped(endpoint, facts.body)) : { facts, input }
}

const relay = ({ path }: Endpoint, { facts, input }: Asked, target: Target): UpstreamRequest => {
  const body = splice(facts.body, [
    ...renameModel(facts, target.model),
    ...settleOptions(facts, target.contextTokens),
    ...(input.count === 0 ? [] : settleKeepAlive(facts, target.node.keepAlive)),
  ])
  return upstreamRequest('ollama', path, body, false)
}

const toOpenAi = ({ member }: Endpoint, { facts }: Asked, model: string): UpstreamRequest => {
  const body = parseBody(facts.body)
  const input = textsOf(body[member], member)
  const asked = compact({ model, input, encoding_format: 'float', dimensions: numberAt(body, 'dimensions') })
  return upstreamRequest('openai', '/v1/embeddings', asked, false)
}

const write = (
  { name }: Endpoint,
  job: Job,
  { json, body, vectors, usage }: Embedded,
  timing: Timing,
): Json | Uint8Array => {
  const isOwn = 'embeddings' in json || 'embedding' in json
  if (isOwn && (json.model === undefined || json.model === job.asked)) return body
  if (isOwn) return { ...json, model: job.asked }
  if (name === 'embeddings') return { embedding: vectors[0] }
  return {
    model: job.asked,
    embeddings: vectors,
    total_duration: nanoseconds(timing.now() - timing.sentAt),
    load_duration: nanoseconds(timing.loadMs),
    prompt_eval_count: usage.tokensIn ?? job.promptTokens.value,
  }
}

/** The model is in memory, and there was nothing to embed. */
const loaded = ({ name }: Endpoint, job: Job): OwnAnswer => {
  const answer = name === 'embed' ? { model: job.asked, embeddings: [] } : { embedding: [] }
  return { contentType: 'application/json; charset=utf-8', body: encode(JSON.stringify(answer)) }
}

const decode = (endpoint: Endpoint, arrival: Arrival): Exchange => {
  const asked = read(endpoint, arrival.body)
  const { facts, input } = asked
  const job: Job = {
    ...jobOf(arrival, facts, { dialect: 'ollama', operation: `ollama.${endpoint.name}`, streams: false }),
    stream: false,
    needs: ['embedding'],
  }
  return {
    job,
    loaded: (native) => (input.count === 0 && !native.includes('ollama') ? loaded(endpoint, job) : undefined),
    request: (target) =>
      target.native.includes('ollama') ? relay(endpoint, asked, target) : toOpenAi(endpoint, asked, target.model),
    reply: (_request, _model, timing) =>
      embeddingsAnswer(input.count, (embedded) => write(endpoint, job, embedded, timing)),
    rejection: (request, status, body) => rejectionOf('ollama', job.id, request.dialect === 'ollama', status, body),
    inBandError: (error) => encode(`${JSON.stringify(errorBody('ollama', error.with({ requestId: job.id })))}\n`),
  }
}

const route = (endpoint: Endpoint): InferenceRoute => ({
  method: 'POST',
  path: endpoint.path,
  decode: (arrival) => decode(endpoint, arrival),
})

export const ollamaEmbeddings: readonly InferenceRoute[] = [route(embed), route(embeddings)]
