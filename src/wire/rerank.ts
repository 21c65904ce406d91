/** `POST /v1/rerank` as Jina and Cohere have it, in all its spellings, and as llama-server takes it. */
import type { Job } from '../domain/job'
import { encode, splice } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import { renameModel } from './edits'
import type { Exchange } from './exchange'
import { gathered } from './gathered'
import { jobOf } from './job'
import type { Json } from './json/values'
import { booleanAt, compact, invalid, isObject, numberAt, parseBody, stringAt } from './json/values'
import { commonOf } from './openai-side'
import type { MemberReader } from './body-facts'
import { peek } from './peek'
import { skip } from './json/cursor'
import { upstreamRequest } from './upstream'

const paths = ['/v1/rerank', '/rerank', '/v2/rerank', '/v1/reranking', '/reranking'] as const

const wholeType = 'application/json; charset=utf-8'

interface Asked {
  readonly documents: readonly unknown[]
  readonly topN?: number
  readonly returns: boolean
}

const read = (body: Json): Asked => {
  if (!stringAt(body, 'query')) throw invalid('"query" is missing or empty.', 'query')
  const documents = body.documents ?? body.texts
  if (!Array.isArray(documents) || documents.length === 0)
    throw invalid('"documents" is missing or empty.', 'documents')
  const isTold = (entry: unknown): boolean => typeof entry === 'string' || isObject(entry)
  if (!documents.every(isTold)) throw invalid('Every entry of "documents" must be a text or an object.', 'documents')
  const topN = numberAt(body, 'top_n') ?? numberAt(body, 'top_k')
  return { documents, returns: booleanAt(body, 'return_documents') ?? false, ...(topN !== undefined && { topN }) }
}

const textOf = (document: unknown): string => {
  if (typeof document === 'string') return document
  const { text, ...others } = isObject(document) ? document : {}
  return typeof text === 'string' ? text : JSON.stringify(others)
}

/** Engines take texts. The answer is cut and completed here, so that all of them may give all scores. */
const askedOf = (body: Json, { documents }: Asked, model: string): Json => {
  const { texts: _texts, return_documents: _returns, top_k: _topK, ...rest } = body
  return { ...rest, model, documents: documents.map(textOf) }
}

interface Score {
  readonly index: number
  readonly relevance_score: number
}

const scoreOf = (entry: unknown, count: number): Score | undefined => {
  if (!isObject(entry)) return undefined
  const score = entry.relevance_score ?? entry.score
  const { index } = entry
  if (typeof index !== 'number' || typeof score !== 'number' || index < 0 || index >= count) return undefined
  return { index, relevance_score: score }
}

const tokensOf = ({ usage, meta }: Json): number | undefined => {
  const told = isObject(usage) ? (usage.prompt_tokens ?? usage.total_tokens) : undefined
  const billed = isObject(meta) && isObject(meta.billed_units) ? meta.billed_units.total_tokens : undefined
  return typeof told === 'number' ? told : typeof billed === 'number' ? billed : undefined
}

const documentOf = (document: unknown): Json => (isObject(document) ? document : { text: document })

/** One answer that clients of either service can read, best first. Undefined where the node left scores out. */
const write = (json: Json, { documents, topN, returns }: Asked, job: Job): Json | undefined => {
  const entries = Array.isArray(json.results) ? json.results : Array.isArray(json.data) ? json.data : []
  const scores = entries.map((entry) => scoreOf(entry, documents.length)).filter((score) => score !== undefined)
  const wanted = Math.min(documents.length, topN ?? documents.length)
  if (scores.length < wanted || scores.length < entries.length) return undefined
  const best = [...scores].sort((a, b) => b.relevance_score - a.relevance_score).slice(0, wanted)
  const tokens = tokensOf(json) ?? job.promptTokens.value
  return {
    id: job.id,
    object: 'list',
    model: job.asked,
    results: best.map((score) =>
      compact({ ...score, document: returns ? documentOf(documents[score.index]) : undefined }),
    ),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    meta: { api_version: { version: '2' }, billed_units: { total_tokens: tokens, search_units: 1 } },
  }
}

/** Everything in it is read by the model. */
const counts: MemberReader = (cursor, draft) => {
  const span = skip(cursor)
  draft.textBytes += span.end - span.start
}

const decode = (arrival: Arrival): Exchange => {
  const facts = peek(arrival.body, { query: counts, documents: counts, texts: counts })
  const body = parseBody(facts.body)
  const asked = read(body)
  const job: Job = {
    ...jobOf(arrival, facts, { dialect: 'openai', operation: 'openai.rerank', streams: false }),
    stream: false,
    needs: ['rerank'],
  }
  const isPlain =
    asked.documents.every((entry) => typeof entry === 'string') && body.texts === undefined && !asked.returns
  return {
    ...commonOf(job),
    request: ({ model }) =>
      upstreamRequest(
        'openai',
        '/v1/rerank',
        isPlain ? splice(facts.body, renameModel(facts, model)) : askedOf(body, asked, model),
        false,
      ),
    reply: () =>
      gathered(wholeType, (json) => {
        const answer = write(json, asked, job)
        const tokensIn = tokensOf(json)
        if (answer === undefined)
          return { problem: { message: 'The node answered without a score for every document.' } }
        return { body: encode(JSON.stringify(answer)), ...(tokensIn !== undefined && { usage: { tokensIn } }) }
      }),
  }
}

export const rerankRoutes: readonly InferenceRoute[] = paths.map((path) => ({ method: 'POST', path, decode }))
