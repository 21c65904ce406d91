/** OpenAI `POST /v1/embeddings`. */
import type { Job } from '../domain/job'
import { splice } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import { renameModel } from './edits'
import type { EmbeddingInput } from './embedding-input'
import { inputReader, textsOf } from './embedding-input'
import type { Embedded } from './embeddings-answer'
import { embeddingsAnswer } from './embeddings-answer'
import type { Exchange, UpstreamRequest } from './exchange'
import { jobOf } from './job'
import { value } from './json/cursor'
import type { Json } from './json/values'
import { compact, invalid, numberAt, parseBody } from './json/values'
import type { Target } from './node-side'
import { speaksOpenAi } from './node-side'
import { commonOf } from './openai-side'
import type { BodyFacts, MemberReader } from './body-facts'
import { peek } from './peek'
import type { Vector } from './vectors'
import { toBase64 } from './vectors'
import { upstreamRequest } from './upstream'

const path = '/v1/embeddings'

type Format = 'float' | 'base64'

const toOllama = (facts: BodyFacts, { node, model, contextTokens }: Target): UpstreamRequest => {
  const body = parseBody(facts.body)
  const asked = compact({
    model,
    input: textsOf(body.input, 'input'),
    dimensions: numberAt(body, 'dimensions'),
    keep_alive: node.keepAlive,
    options: contextTokens === undefined ? undefined : { num_ctx: contextTokens },
  })
  return upstreamRequest('ollama', '/api/embed', asked, false)
}

const inFormat = (vector: Vector, format: Format): unknown => (format === 'base64' ? toBase64(vector) : vector)

/** The node's own bytes where they say what was asked for, under the name that was asked for. */
const write = ({ vectors, entries, usage, json, body }: Embedded, job: Job, format: Format): Json | Uint8Array => {
  const isAsAsked = entries.every((entry) => (typeof entry === 'string') === (format === 'base64'))
  if (Array.isArray(json.data) && isAsAsked && json.model === job.asked && json.usage) return body
  const { tokensIn = 0 } = usage
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: inFormat(vector, format) })),
    model: job.asked,
    usage: json.usage ?? { prompt_tokens: tokensIn, total_tokens: tokensIn },
  }
}

const decode = (arrival: Arrival): Exchange => {
  const input: EmbeddingInput = { count: 0, bytes: 0, hasTokens: false }
  let format: Format = 'float'
  const encodingFormat: MemberReader = (cursor) => {
    const word = value(cursor) ?? 'float'
    if (word !== 'float' && word !== 'base64')
      throw invalid('"encoding_format" must be "float" or "base64".', 'encoding_format')
    format = word
  }
  const facts = peek(arrival.body, { input: inputReader(input), encoding_format: encodingFormat })
  if (input.count === 0) throw invalid('"input" is missing or empty.', 'input')
  const job: Job = {
    ...jobOf(arrival, facts, { dialect: 'openai', operation: 'openai.embeddings', streams: false }),
    stream: false,
    needs: ['embedding'],
  }
  return {
    ...commonOf(job),
    request: (target) =>
      speaksOpenAi(target)
        ? upstreamRequest('openai', path, splice(facts.body, renameModel(facts, target.model)), false)
        : toOllama(facts, target),
    reply: () => embeddingsAnswer(input.count, (embedded) => write(embedded, job, format)),
  }
}

export const embeddingsRoute: InferenceRoute = { method: 'POST', path, decode }
