/** Changes to a client's body that leave everything else in it byte for byte as it was. */
import type { Edit } from './bytes'
import type { Span } from './json/cursor'
import type { BodyFacts } from './peek'

const comma = 0x2c
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

/** Cuts a member with the comma behind it, or before it when it is the last one. */
const removeMember = ({ body }: BodyFacts, { start, end }: Span): Edit => {
  let next = end
  while (isSpace(body[next])) next++
  if (body[next] === comma) {
    do next++
    while (isSpace(body[next]))
    return { start, end: next, text: '' }
  }
  let before = start - 1
  while (isSpace(body[before])) before--
  return { start: body[before] === comma ? before : start, end, text: '' }
}

/**
 * `num_ctx` towards an Ollama that holds the model: a value unlike the loaded window would reload it for everybody. A
 * smaller one is dropped; a larger one stays, since the request was placed where it can be had. With `fixed` the model
 * is loaded with a window of the operator's choice, and silence would mean Ollama's default: then it is always named.
 */
export const settleContext = (facts: BodyFacts, contextTokens: number | undefined, fixed: boolean): Edit[] => {
  if (contextTokens === undefined) return []
  const asked = facts.contexts.at(-1)
  if (asked !== undefined && asked.tokens > contextTokens) return []
  const text = String(contextTokens)
  if (asked === undefined) {
    if (!fixed) return []
    const member = `"num_ctx":${text}`
    return facts.options
      ? [afterOpening(facts, facts.options, member)]
      : [afterOpening(facts, whole(facts), `"options":{${member}}`)]
  }
  const [only, ...others] = facts.contexts
  if (only && others.length === 0 && !fixed) return [removeMember(facts, only.member)]
  return facts.contexts.map(({ value }) => ({ ...value, text }))
}
