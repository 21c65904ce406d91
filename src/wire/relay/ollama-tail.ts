/** What the end of an Ollama stream says. */
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { errorOf } from '../replies'
import type { Said } from './exhausted'
import { endedThinking, isText } from './exhausted'
import type { StreamEnd } from './openai-tail'

/** Only the last object has it; `done` itself may stand before a token list longer than the tail. */
const lastObject = /"done":\s*true|"total_duration":\s*\d/

const count = (line: string, name: string): number | undefined => {
  const found = new RegExp(`"${name}":\\s*(\\d+)`).exec(line)
  return found ? Number(found[1]) : undefined
}

export const ollamaUsage = (line: string): Usage => {
  const tokensIn = count(line, 'prompt_eval_count')
  const tokensOut = count(line, 'eval_count')
  return { ...(tokensIn !== undefined && { tokensIn }), ...(tokensOut !== undefined && { tokensOut }) }
}

const saidIn = ({ message, ...top }: Json): Said => {
  const { content, response, thinking, tool_calls: calls } = isObject(message) ? message : top
  if ([content, response].some(isText) || Array.isArray(calls)) return 'answer'
  return isText(thinking) ? 'thinking' : undefined
}

const ranOut = /"done_reason":\s*"length"/

const exhausted = (lines: readonly string[]): Usage =>
  ranOut.test(lines.at(-1) ?? '') ? endedThinking(lines.map((line) => saidIn(parseReply(line) ?? {}))) : {}

export const readOllamaEnd = (tail: string): StreamEnd => {
  const lines = tail.trimEnd().split('\n')
  const line = lines.at(-1) ?? ''
  const problem = errorOf(parseReply(line) ?? {})
  if (problem) return { complete: false, problem, usage: {} }
  const complete = lastObject.test(line) && line.endsWith('}')
  return { complete, usage: complete ? { ...ollamaUsage(line), ...exhausted(lines) } : {} }
}
