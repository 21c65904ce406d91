/** What the end of an OpenAI stream says. */
import type { Writable } from '../../domain/writable'
import type { Usage } from '../exchange'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { usageOf } from '../openai-reader'
import { errorOf } from '../replies'
import type { Said } from './exhausted'
import { endedThinking, isText } from './exhausted'

export interface StreamEnd {
  readonly complete: boolean
  readonly problem?: { readonly message: string; readonly status?: number }
  readonly usage: Usage
}

const finishReason = /"finish_reason":\s*"/
const dataLine = /^data: ?(.*)$/

/** A whole event from the tail; the first line may be cut and is then no JSON. */
const readEvent = (line: string): Json[] => {
  const json = parseReply(dataLine.exec(line)?.[1] ?? '')
  return json ? [json] : []
}

export const usageFrom = (json: Json | undefined): Usage => {
  if (json === undefined) return {}
  const { tokensIn, tokensOut, cachedIn } = usageOf(json) ?? {}
  const usage: Writable<Usage> = {}
  if (tokensIn !== undefined) usage.tokensIn = tokensIn
  if (tokensOut !== undefined) usage.tokensOut = tokensOut
  if (cachedIn !== undefined) usage.cachedIn = cachedIn
  return usage
}

const choiceOf = ({ choices }: Json): Json[] => (Array.isArray(choices) && isObject(choices[0]) ? [choices[0]] : [])

const saidIn = ({ delta, text }: Json): Said => {
  const { content, tool_calls: calls, reasoning, reasoning_content: reasoned } = isObject(delta) ? delta : {}
  if ([content, text].some(isText) || (Array.isArray(calls) && calls.length > 0)) return 'answer'
  return [reasoning, reasoned].some(isText) ? 'thinking' : undefined
}

const exhausted = (events: readonly Json[]): Usage => {
  const choices = events.flatMap(choiceOf)
  return choices.some(({ finish_reason: reason }) => reason === 'length') ? endedThinking(choices.map(saidIn)) : {}
}

export const readOpenAiEnd = (tail: string): StreamEnd => {
  const lines = tail.split('\n').map((line) => line.trimEnd())
  const done = lines.some((line) => line === 'data: [DONE]' || line === 'data:[DONE]')
  const events = lines.flatMap(readEvent)
  const problem = events.map(errorOf).findLast((error) => error !== undefined)
  return {
    complete: (done || finishReason.test(tail)) && problem === undefined,
    ...(problem && { problem }),
    usage: {
      ...usageFrom(events.findLast((event) => isObject(event.usage) || isObject(event.timings))),
      ...exhausted(events),
    },
  }
}
