/** What the beginning and the end of an Anthropic stream say. */
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { errorOf } from '../replies'
import type { StreamEnd } from './openai-tail'

const count = (json: Json, name: string): number | undefined => {
  const value = json[name]
  return typeof value === 'number' ? value : undefined
}

/** Of `usage`: there the tokens of the prompt that came out of a cache are counted apart. */
export const anthropicUsage = (usage: unknown): Usage => {
  if (!isObject(usage)) return {}
  const fresh = count(usage, 'input_tokens')
  const cachedIn = count(usage, 'cache_read_input_tokens')
  const written = count(usage, 'cache_creation_input_tokens') ?? 0
  const tokensOut = count(usage, 'output_tokens')
  return {
    ...(fresh !== undefined && { tokensIn: fresh + (cachedIn ?? 0) + written }),
    ...(tokensOut !== undefined && { tokensOut }),
    ...(cachedIn !== undefined && { cachedIn }),
  }
}

/** `message_start` wraps what other dialects tell at the top. */
export const anthropicStart = (json: Json): Json => (isObject(json.message) ? json.message : json)

const readEvent = (line: string): Json[] => {
  const json = line.startsWith('data:') ? parseReply(line.slice('data:'.length)) : undefined
  return json ? [json] : []
}

export const readAnthropicEnd = (tail: string): StreamEnd => {
  const events = tail.split('\n').flatMap(readEvent)
  const problem = events.map(errorOf).findLast((error) => error !== undefined)
  return {
    complete: events.some(({ type }) => type === 'message_stop') && problem === undefined,
    ...(problem && { problem }),
    usage: anthropicUsage(events.findLast(({ type }) => type === 'message_delta')?.usage),
  }
}
