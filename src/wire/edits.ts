/** Changes to a client's body that leave everything else in it byte for byte as it was. */
import type { Edit } from './bytes'
import { decode } from './bytes'
import type { Span } from './json/cursor'
import type { BodyFacts } from './body-facts'

const closeBrace = 0x7d

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The top-level model name, when the node has another one. */
export const renameModel = (facts: BodyFacts, model: string): Edit[] =>
  facts.model === model
    ? []
    : facts.modelSpans.map(({ start, end }) => ({ start: start - 1, end: end + 1, text: JSON.stringify(model) }))

const afterOpening = ({ body }: BodyFacts, span: Span, member: string): Edit => {
  let next = span.start + 1
  while (isSpace(body[next])) next++
  return { start: span.start + 1, end: span.start + 1, text: body[next] === closeBrace ? member : `${member},` }
}

/** The whole document's braces. */
const whole = ({ body }: BodyFacts): Span => ({ start: body.indexOf(0x7b), end: body.length })

/** True when a stream is asked for whose client does not want the usage chunk. */
export const lacksUsage = (facts: BodyFacts): boolean =>
  facts.stream === true && facts.streamOptions?.includeUsage?.on !== true

/** `stream_options.include_usage: true`, so that every answer can be counted. */
export const askForUsage = (facts: BodyFacts): Edit[] => {
  if (!lacksUsage(facts)) return []
  const { streamOptions } = facts
  const on = '"include_usage":true'
  if (streamOptions === undefined) return [afterOpening(facts, whole(facts), `"stream_options":{${on}}`)]
  if (!streamOptions.isObject) return [{ ...streamOptions.value, text: `{${on}}` }]
  if (streamOptions.includeUsage) return [{ ...streamOptions.includeUsage.value, text: 'true' }]
  return [afterOpening(facts, streamOptions.value, on)]
}

/** By these, too, Ollama loads a model. */
const loadTimeOptions = new Set(['num_batch', 'num_gpu', 'main_gpu', 'use_mmap', 'num_thread', 'draft_num_predict'])

/**
 * `options` towards an Ollama. Whatever differs from how the model was loaded would reload it, for everybody. Silence is
 * no exception: to Ollama it means the model's default window, whichever is loaded. So a known window is always named;
 * a larger one stays, since the request was placed where it can be had; how else to load is not the client's to say.
 */
export const settleOptions = (facts: BodyFacts, loadedTokens = 0): Edit[] => {
  const { body, options, contextTokens = 0 } = facts
  const members = options?.members ?? []
  const window = Math.max(loadedTokens, contextTokens)
  const settled = members.filter(({ name }) => name === 'num_ctx' || loadTimeOptions.has(name))
  const [only] = settled
  const isSettled = only === undefined ? window === 0 : only.name === 'num_ctx' && contextTokens === window
  if (settled.length <= 1 && isSettled) return []
  const kept = members.filter((member) => !settled.includes(member))
  const texts = kept.map(({ start, end }) => decode(body.subarray(start, end)))
  const text = `{${[...texts, ...(window > 0 ? [`"num_ctx":${window}`] : [])].join(',')}}`
  return options ? [{ ...options, text }] : [afterOpening(facts, whole(facts), `"options":${text}`)]
}

/** The operator's word on how long the model stays, over the client's. */
export const settleKeepAlive = (facts: BodyFacts, keepAlive: string | undefined): Edit[] => {
  if (keepAlive === undefined) return []
  const text = JSON.stringify(keepAlive)
  return facts.keepAlive ? [{ ...facts.keepAlive, text }] : [afterOpening(facts, whole(facts), `"keep_alive":${text}`)]
}
