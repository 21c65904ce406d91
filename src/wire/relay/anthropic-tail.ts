/** What the beginning and the end of an Anthropic stream say. */
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { errorOf } from '../replies'
import type { Said } from './exhausted'
import { endedThinking, isText } from './exhausted'
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

/** Some engines tell an error as the bare object, which only the event's name makes one. */
const readEvent = (line: string, before = ''): Json[] => {
  const json = line.startsWith('data:') ? parseReply(line.slice('data:'.length)) : undefined
  if (json === undefined) return []
  return [/^event: ?error\b/.test(before) && !errorOf(json) ? { error: json } : json]
}

const saidIn = ({ delta, content_block: block }: Json): Said => {
  if (isObject(block) && block.type === 'tool_use') return 'answer'
  const { text, partial_json: input, thinking } = isObject(delta) ? delta : {}
  if ([text, input].some(isText)) return 'answer'
  return isText(thinking) ? 'thinking' : undefined
}

const exhausted = (events: readonly Json[]): Usage => {
  const ranOut = events.some(({ delta }) => isObject(delta) && delta.stop_reason === 'max_tokens')
  return ranOut ? endedThinking(events.map(saidIn)) : {}
}

export const readAnthropicEnd = (tail: string): StreamEnd => {
  const events = tail.split('\n').flatMap((line, at, lines) => readEvent(line, lines[at - 1]))
  const problem = events.map(errorOf).findLast((error) => error !== undefined)
  return {
    complete: events.some(({ type }) => type === 'message_stop') && problem === undefined,
    ...(problem && { problem }),
    usage: {
      ...anthropicUsage(events.findLast(({ type }) => type === 'message_delta')?.usage),
      ...exhausted(events),
    },
  }
}
