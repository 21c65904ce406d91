/** What an OpenAI-speaking node answers, stream or whole, as canonical events. */
import type { Writable } from '../domain/writable'
import type { EngineTimes, FinishReason, ReplyEvent } from './canonical'
import { argumentsText, callId } from './calls'
import type { Json } from './json/values'
import { isObject, parseReply } from './json/values'
import type { FrameReader, UsageEvent } from './replies'
import { errorOf, notJson } from './replies'

const tokens = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

const times = (timings: unknown): EngineTimes | undefined => {
  if (!isObject(timings)) return undefined
  const promptMs = tokens(timings.prompt_ms)
  const generateMs = tokens(timings.predicted_ms)
  return { ...(promptMs !== undefined && { promptMs }), ...(generateMs !== undefined && { generateMs }) }
}

/** `usage`, or llama-server's `timings` where a node tells only these. */
export const usageOf = (json: Json): UsageEvent | undefined => {
  const usage = isObject(json.usage) ? json.usage : undefined
  const timings = isObject(json.timings) ? json.timings : undefined
  if (usage === undefined && timings === undefined) return undefined
  const prompt = isObject(usage?.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const completion = isObject(usage?.completion_tokens_details) ? usage.completion_tokens_details : {}
  const evaluated = tokens(timings?.prompt_n)
  const cachedIn = tokens(prompt.cached_tokens) ?? tokens(timings?.cache_n)
  const tokensIn =
    tokens(usage?.prompt_tokens) ?? (evaluated === undefined ? undefined : evaluated + (tokens(timings?.cache_n) ?? 0))
  const tokensOut = tokens(usage?.completion_tokens) ?? tokens(timings?.predicted_n)
  const reasoningOut = tokens(completion.reasoning_tokens)
  const engine = times(timings)
  const told: Writable<UsageEvent> = { type: 'usage' }
  if (tokensIn !== undefined) told.tokensIn = tokensIn
  if (tokensOut !== undefined) told.tokensOut = tokensOut
  if (cachedIn !== undefined) told.cachedIn = cachedIn
  if (reasoningOut !== undefined) told.reasoningOut = reasoningOut
  if (engine) told.times = engine
  return told
}

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const readLogprobs = (choice: Json): readonly unknown[] | undefined =>
  isObject(choice.logprobs) && Array.isArray(choice.logprobs.content) ? choice.logprobs.content : undefined

/**
 * Joins fragments to calls. Indexes of nodes are not to be trusted: some leave them out, some give parallel calls the
 * same one. A fragment with an id that is new there begins a call.
 */
export const createCallReader = (request: string): ((fragment: unknown) => ReplyEvent[]) => {
  const open = new Map<number, { index: number; id: string | undefined }>()
  let count = 0
  return (fragment: unknown): ReplyEvent[] => {
    if (!isObject(fragment)) return []
    const named = isObject(fragment.function) ? fragment.function : {}
    const id = isText(fragment.id) ? fragment.id : undefined
    const place = tokens(fragment.index) ?? (id !== undefined || isText(named.name) ? count : count - 1)
    const known = open.get(place)
    const text = argumentsText(named.arguments)
    const begins = known === undefined || (id !== undefined && known.id !== id && isText(named.name))
    if (!begins) return text === '' ? [] : [{ type: 'arguments', index: known.index, fragment: text }]
    const index = count++
    open.set(place, { index, id })
    return [{ type: 'call', index, id: id ?? callId(request, index), name: String(named.name ?? ''), arguments: text }]
  }
}

/** `request` is our request id, from which ids of calls that have none are made. */
export const createOpenAiReader = (request: string): FrameReader => {
  const readCall = createCallReader(request)
  let called = false

  const readChoice = (choice: Json): ReplyEvent[] => {
    const events: ReplyEvent[] = []
    const delta = isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : {}
    const reasoning = isText(delta.reasoning_content) ? delta.reasoning_content : delta.reasoning
    if (isText(reasoning)) events.push({ type: 'reasoning', text: reasoning })
    // `text` is what the completions endpoint answers.
    const text = [delta.content, delta.refusal, choice.text].find(isText)
    const logprobs = readLogprobs(choice)
    if (text !== undefined) events.push({ type: 'text', text, ...(logprobs && { logprobs }) })
    const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls.flatMap(readCall) : []
    called ||= calls.length > 0
    events.push(...calls)
    const reason = isText(choice.finish_reason) ? (reasons[choice.finish_reason] ?? 'stop') : undefined
    if (reason !== undefined) {
      // vLLM's own member: the stop string that was met, or the number of a token.
      const stoppedBy = isText(choice.stop_reason) ? { stoppedBy: choice.stop_reason } : {}
      events.push({ type: 'finish', reason: called && reason === 'stop' ? 'tool_calls' : reason, ...stoppedBy })
    }
    return events
  }

  return ({ data, event }) => {
    if (data === '[DONE]') return [{ type: 'done' }]
    const json = parseReply(data)
    if (json === undefined) return [notJson]
    const error = errorOf(json) ?? (event === 'error' ? errorOf({ error: json }) : undefined)
    if (error) return [{ type: 'error', ...error }]
    const [choice] = Array.isArray(json.choices) ? json.choices : []
    const usage = usageOf(json)
    return [...(isObject(choice) ? readChoice(choice) : []), ...(usage ? [usage] : [])]
  }
}
