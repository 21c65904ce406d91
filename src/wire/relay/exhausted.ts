/** Answers whose whole allowance of tokens went into thinking. */
import { decode, encode, find } from '../bytes'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'

/** What a piece of an answer says: a thought, or the answer itself. */
export type Said = 'thinking' | 'answer' | undefined

/**
 * Of a stream that ran out of tokens, by what its last pieces say. Models think first: what was still thinking when the
 * tokens ran out had not begun to answer. So nothing need be looked at while the stream flows.
 */
export const endedThinking = (last: readonly Said[]): { readonly thinkingExhausted?: true } => {
  const told = last.filter((said) => said !== undefined)
  return told.length > 0 && told.every((said) => said === 'thinking') ? { thinkingExhausted: true } : {}
}

export const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

const ofOpenAi = ({ choices }: Json): boolean => {
  const [choice] = Array.isArray(choices) ? choices : []
  if (!isObject(choice) || choice.finish_reason !== 'length' || !isObject(choice.message)) return false
  const { content, reasoning, reasoning_content: reasoned, tool_calls: calls } = choice.message
  return !isText(content) && (isText(reasoned) || isText(reasoning)) && !(Array.isArray(calls) && calls.length > 0)
}

const ofOllama = ({ done_reason: reason, message, ...rest }: Json): boolean => {
  const said = isObject(message) ? message : rest
  return reason === 'length' && isText(said.thinking) && !isText(said.content) && !isText(said.response)
}

const ofAnthropic = ({ stop_reason: reason, content }: Json): boolean =>
  reason === 'max_tokens' &&
  Array.isArray(content) &&
  content.length > 0 &&
  content.every((block) => isObject(block) && (block.type === 'thinking' || block.text === ''))

/** One of these stands in every answer that ran out of tokens; only such a one is parsed. */
const marks = [encode('"length"'), encode('"max_tokens"')]

export const isThinkingExhausted = (body: Uint8Array): boolean => {
  if (!marks.some((mark) => find(body, mark) >= 0)) return false
  const json = parseReply(decode(body))
  return json !== undefined && (ofOpenAi(json) || ofOllama(json) || ofAnthropic(json))
}
