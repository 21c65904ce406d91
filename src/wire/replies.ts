/** What readers of nodes' answers and writers of clients' answers share. */
import type { FinishReason, ReplyEvent } from './canonical'
import type { Json } from './json/values'
import { isObject } from './json/values'
import type { Frame } from './lines'

export type UsageEvent = ReplyEvent & { readonly type: 'usage' }

/** Reads one frame at a time; keeps what later frames refer to. */
export type FrameReader = (frame: Frame) => ReplyEvent[]

export const notJson: ReplyEvent = { type: 'error', message: 'The node sent something that is not JSON.' }

/** Makes the client's bytes (as text) of events in order. */
export interface ReplyWriter {
  write(event: ReplyEvent): string
  /** The answer is over and whole; called once. */
  end(): string
}

/** An error that a node put into a 2xx answer, in any of the shapes in use; undefined when there is none. */
export const errorOf = (json: Json): { message: string; status?: number } | undefined => {
  const { error } = json
  if (error === undefined || error === null || error === false) return undefined
  if (typeof error === 'string') return { message: error }
  const message = isObject(error) && typeof error.message === 'string' ? error.message : 'The node reported an error.'
  const code = isObject(error) ? error.code : undefined
  return typeof code === 'number' && code >= 400 && code <= 599 ? { message, status: code } : { message }
}

/** Gathers an answer that is not streamed. */
export interface Gathered {
  text: string
  reasoning: string
  readonly calls: { id: string; name: string; arguments: string }[]
  readonly logprobs: unknown[]
  finish?: FinishReason
  usage?: UsageEvent
}

export const emptyAnswer = (): Gathered => ({ text: '', reasoning: '', calls: [], logprobs: [] })

export const gather = (into: Gathered, event: ReplyEvent): void => {
  if (event.type === 'text') {
    into.text += event.text
    if (event.logprobs) into.logprobs.push(...event.logprobs)
  } else if (event.type === 'reasoning') into.reasoning += event.text
  else if (event.type === 'call') into.calls.push({ id: event.id, name: event.name, arguments: event.arguments })
  else if (event.type === 'arguments') {
    const call = into.calls[event.index]
    if (call) call.arguments += event.fragment
  } else if (event.type === 'finish') into.finish = event.reason
  else if (event.type === 'usage') into.usage = event
}
