/** Answers with embeddings: read from either kind of node, and never taken on trust. */
import { encode } from './bytes'
import type { ReplyTransform, Usage } from './exchange'
import type { Finished } from './gathered'
import { gathered } from './gathered'
import type { Json } from './json/values'
import { isObject } from './json/values'
import type { Vector } from './vectors'
import { readVector } from './vectors'

const wholeType = 'application/json; charset=utf-8'

/** Old engines answer a member that they do not know with nothing at all, and status 200. */
const nothing: Finished = { problem: { message: 'The node answered without a vector.' } }

export interface Embedded {
  /** In the order of the inputs. */
  readonly vectors: readonly Vector[]
  /** As the node wrote them, in the same order. */
  readonly entries: readonly unknown[]
  readonly usage: Usage
  readonly json: Json
  readonly body: Uint8Array
}

const tokens = (value: unknown): Usage => (typeof value === 'number' ? { tokensIn: value } : {})

const byIndex = (data: readonly unknown[]): readonly unknown[] => {
  const place = (entry: unknown, at: number): number =>
    isObject(entry) && typeof entry.index === 'number' ? entry.index : at
  return data
    .map((entry, at) => ({ entry, place: place(entry, at) }))
    .sort((a, b) => a.place - b.place)
    .map(({ entry }) => entry)
}

/** `data` of OpenAI, `embeddings` of Ollama, `embedding` of its older endpoint. */
const entriesOf = ({ data, embeddings, embedding }: Json): readonly unknown[] => {
  if (Array.isArray(data)) return byIndex(data).map((entry) => (isObject(entry) ? entry.embedding : undefined))
  return Array.isArray(embeddings) ? embeddings : [embedding]
}

const usageOf = ({ usage, prompt_eval_count: count }: Json): Usage =>
  isObject(usage) ? tokens(usage.prompt_tokens) : tokens(count)

/**
 * The node's answer as `write` puts it. Fails when one of `count` vectors is missing or empty; with `count` 0, a request
 * that only loads the model, anything goes.
 */
export const embeddingsAnswer = (count: number, write: (embedded: Embedded) => Json | Uint8Array): ReplyTransform =>
  gathered(wholeType, (json, body) => {
    const entries = count === 0 ? [] : entriesOf(json)
    const vectors = entries.map(readVector).filter((vector) => vector !== undefined)
    if (vectors.length !== count || entries.length !== count) return nothing
    const usage = usageOf(json)
    const written = write({ vectors, entries, usage, json, body })
    return { body: written instanceof Uint8Array ? written : encode(JSON.stringify(written)), usage }
  })
