/** What the end of an Ollama stream says. */
import type { Writable } from '../../domain/writable'
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { errorOf } from '../replies'
import type { Said } from './exhausted'
import { endedThinking, isText } from './exhausted'
import type { StreamEnd } from './openai-tail'

/** Only the last object has it; `done` itself may stand before a token list longer than the tail. */
const lastObject = /"done":\s*true|"total_duration":\s*\d/

const promptCount = /"prompt_eval_count":\s*(\d+)/
const answerCount = /"eval_count":\s*(\d+)/

const count = (line: string, what: RegExp): number | undefined => {
  const found = what.exec(line)
  return found ? Number(found[1]) : undefined
}

const usageOf = (tokensIn: number | undefined, tokensOut: number | undefined): Usage => {
  const usage: Writable<Usage> = {}
  if (tokensIn !== undefined) usage.tokensIn = tokensIn
  if (tokensOut !== undefined) usage.tokensOut = tokensOut
  return usage
}

export const ollamaUsage = (line: string): Usage => usageOf(count(line, promptCount), count(line, answerCount))

const counted = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Of a whole answer. */
export const ollamaUsageIn = (json: Json): Usage => usageOf(counted(json.prompt_eval_count), counted(json.eval_count))

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
