/** What an Ollama node answers to `/api/chat` or `/api/generate`, stream or whole, as canonical events. */
import type { FinishReason, ReplyEvent } from './canonical'
import { argumentsText, callId } from './calls'
import type { Json } from './json/values'
import { isObject, parseReply } from './json/values'
import type { FrameReader } from './replies'
import { errorOf, notJson } from './replies'

const nanosecondsPerMs = 1e6

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const usageOf = (json: Json): ReplyEvent => {
  const number = (name: string): number | undefined => {
    const value = json[name]
    return typeof value === 'number' ? value : undefined
  }
  const tokensIn = number('prompt_eval_count')
  const tokensOut = number('eval_count')
  const promptNs = number('prompt_eval_duration')
  const generateNs = number('eval_duration')
  return {
    type: 'usage',
    ...(tokensIn !== undefined && { tokensIn }),
    ...(tokensOut !== undefined && { tokensOut }),
    times: {
      ...(promptNs !== undefined && { promptMs: promptNs / nanosecondsPerMs }),
      ...(generateNs !== undefined && { generateMs: generateNs / nanosecondsPerMs }),
    },
  }
}

/** Ollama has no reason for tool calls: the calls came before, and the end says `stop`. */
const reasonOf = (doneReason: unknown, called: boolean): FinishReason => {
  if (doneReason === 'length') return 'length'
  return called ? 'tool_calls' : 'stop'
}

/** `request` is our request id, from which ids of calls that have none are made. */
export const createOllamaReader = (request: string): FrameReader => {
  let calls = 0

  const readCall = (call: unknown): ReplyEvent[] => {
    if (!isObject(call) || !isObject(call.function)) return []
    // Every call counts up: indexes from nodes repeat, and the id may be missing.
    const index = calls++
    const text = argumentsText(call.function.arguments ?? {})
    const id = isText(call.id) ? call.id : callId(request, index)
    return [{ type: 'call', index, id, name: String(call.function.name), arguments: text }]
  }

  return ({ data }) => {
    const json = parseReply(data)
    if (json === undefined) return [notJson]
    const error = errorOf(json)
    if (error) return [{ type: 'error', ...error }]
    const message = isObject(json.message) ? json.message : {}
    const events: ReplyEvent[] = []
    const reasoning = [message.thinking, json.thinking].find(isText)
    if (reasoning !== undefined) events.push({ type: 'reasoning', text: reasoning })
    const text = [message.content, json.response].find(isText)
    const logprobs = Array.isArray(json.logprobs) ? json.logprobs : undefined
    if (text !== undefined) events.push({ type: 'text', text, ...(logprobs && { logprobs }) })
    if (Array.isArray(message.tool_calls)) events.push(...message.tool_calls.flatMap(readCall))
    if (json.done === true)
      events.push({ type: 'finish', reason: reasonOf(json.done_reason, calls > 0) }, usageOf(json), { type: 'done' })
    return events
  }
}
