/** Canonical events -> what a Responses client reads, as events of a stream or as one object. */
import type { RouterError } from '../domain/errors'
import type { FinishReason, ReplyEvent } from './canonical'
import { errorBody } from './errors'
import type { Json } from './json/values'
import { isObject } from './json/values'
import type { ReplyWriter, UsageEvent } from './replies'
import type { Item, ItemEvent, ItemKind } from './responses-items'
import { forms, outputOf } from './responses-items'
import type { Toolbox } from './responses-tools'

export interface ResponsesAnswer {
  /** Ours; the ids of the answer and of its items are derived from it. */
  readonly request: string
  /** Seconds since the epoch. */
  readonly created: number
  /** As the client asked for it. */
  readonly model: string
  readonly toolbox: Toolbox
  /** What the answer repeats of the request. */
  readonly echo: Json
}

/** How far a stream has come; events count up from 0. */
export interface Progress {
  readonly opened: boolean
  readonly next: number
}

export const notBegun: Progress = { opened: false, next: 0 }

export interface ResponsesStreamWriter extends ReplyWriter {
  /** Says that the answer is still being made. */
  wait(): string
  /** The end of an answer that failed: with it the client knows what it got and why there is no more. */
  fail(error: RouterError): string
  progress(): Progress
}

const bare = (request: string): string => request.replace(/^req_/, '')

const usageOf = ({ tokensIn = 0, tokensOut = 0, cachedIn = 0, reasoningOut = 0 }: Partial<UsageEvent>): Json => ({
  input_tokens: tokensIn,
  input_tokens_details: { cached_tokens: cachedIn },
  output_tokens: tokensOut,
  output_tokens_details: { reasoning_tokens: reasoningOut },
  total_tokens: tokensIn + tokensOut,
})

const endings: Readonly<Record<FinishReason, { readonly status: string; readonly reason?: string }>> = {
  stop: { status: 'completed' },
  tool_calls: { status: 'completed' },
  length: { status: 'incomplete', reason: 'max_output_tokens' },
  content_filter: { status: 'incomplete', reason: 'content_filter' },
}

/** The codes that clients of this endpoint know; everything else is a server's failure to them. */
const knownCodes: readonly unknown[] = ['context_length_exceeded', 'rate_limit_exceeded']

const failureOf = (error: RouterError): Json => {
  const told = errorBody('openai', error).error
  const code = isObject(told) && knownCodes.includes(told.code) ? told.code : 'server_error'
  return { code, message: error.message }
}

/** The answer as items in order: what was thought, said and called. Fragments of several calls may interleave. */
const createAnswer = ({ request, toolbox }: ResponsesAnswer) => {
  const items: Item[] = []
  const calls = new Map<number, Item>()
  /** The thought or message that the next piece of its kind belongs to. */
  let open: Item | undefined

  const begin = (kind: ItemKind, call?: Item['call']): Item => {
    const index = items.length
    const id = `${forms[kind].idPrefix}_${bare(request)}_${index}`
    const item: Item = { kind, id, index, status: 'in_progress', text: '', logprobs: [], ...(call && { call }) }
    items.push(item)
    return item
  }

  const finish = (item: Item | undefined, status: Item['status']): readonly ItemEvent[] => {
    if (item?.status !== 'in_progress') return []
    // No text at all is no JSON; clients parse what they get.
    const filled = item.kind === 'function' && item.text === '' && status === 'completed' ? grow(item, '{}') : []
    item.status = status
    return [...filled, ...forms[item.kind].finish(item)]
  }

  const grow = (item: Item, text: string, logprobs: readonly unknown[] = []): readonly ItemEvent[] => {
    item.text += text
    item.logprobs.push(...logprobs)
    return text === '' ? [] : forms[item.kind].grow(item, text, logprobs)
  }

  const closeOpen = (): readonly ItemEvent[] => {
    const events = finish(open, 'completed')
    open = undefined
    return events
  }

  const say = (kind: 'reasoning' | 'message', text: string, logprobs?: readonly unknown[]): ItemEvent[] => {
    if (open?.kind === kind) return [...grow(open, text, logprobs)]
    const closed = closeOpen()
    const item = begin(kind)
    open = item
    return [...closed, ...forms[kind].begin(item), ...grow(item, text, logprobs)]
  }

  return {
    items,
    take(event: ReplyEvent): readonly ItemEvent[] {
      if (event.type === 'text') return say('message', event.text, event.logprobs)
      if (event.type === 'reasoning') return say('reasoning', event.text)
      if (event.type === 'arguments') {
        const item = calls.get(event.index)
        return item ? grow(item, event.fragment) : []
      }
      if (event.type !== 'call') return []
      const closed = closeOpen()
      const tool = toolbox.toolOf(event.name)
      const item = begin(tool.kind, { id: event.id, tool })
      calls.set(event.index, item)
      return [...closed, ...forms[item.kind].begin(item), ...grow(item, event.arguments)]
    },
    /** Closes all that is open; what was begun last is as whole as the answer. One without anything is an empty message. */
    end(status: Item['status']): readonly ItemEvent[] {
      const empty = items.length === 0 ? forms.message.begin(begin('message')) : []
      const last = items.at(-1)
      return [...empty, ...items.flatMap((item) => finish(item, item === last ? status : 'completed'))]
    },
  }
}

/** Both forms: without `streams` nothing is told before the end, and then the response object alone. */
const createResponsesWriter = (
  answer: ResponsesAnswer,
  before: () => Progress,
  streams: boolean,
): ResponsesStreamWriter => {
  const made = createAnswer(answer)
  let opened = false
  let next = 0
  let finish: FinishReason = 'stop'
  let usage: UsageEvent | undefined

  const event = ([type, data]: ItemEvent): string =>
    streams ? `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: next++, ...data })}\n\n` : ''

  const response = (status: string, rest: Json = {}): Json => ({
    id: `resp_${bare(answer.request)}`,
    object: 'response',
    created_at: answer.created,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    model: answer.model,
    output: [],
    ...answer.echo,
    usage: null,
    ...rest,
  })

  /** What stands first in every stream, whoever begins it. */
  const open = (): string => {
    if (opened) return ''
    const earlier = before()
    opened = true
    next = earlier.next
    if (earlier.opened) return ''
    return event(['response.created', { response: response('in_progress') }])
  }

  const inProgress = (): string => event(['response.in_progress', { response: response('in_progress') }])

  const begin = (): string => {
    const first = !opened && !before().opened
    return open() + (first ? inProgress() : '')
  }

  const all = (events: readonly ItemEvent[]): string => events.map(event).join('')

  return {
    write(reply) {
      if (reply.type === 'usage') usage = reply
      else if (reply.type === 'finish') finish = reply.reason
      const begun = begin()
      return begun + all(made.take(reply))
    },
    end() {
      const { status, reason } = endings[finish]
      const begun = begin()
      const rest = all(made.end(status === 'completed' ? 'completed' : 'incomplete'))
      const whole = response(status, {
        output: outputOf(made.items),
        usage: usageOf(usage ?? {}),
        ...(reason !== undefined && { incomplete_details: { reason } }),
      })
      return streams ? begun + rest + event([`response.${status}`, { response: whole }]) : JSON.stringify(whole)
    },
    wait: () => open() + inProgress(),
    fail(error) {
      const begun = begin()
      for (const item of made.items) if (item.status === 'in_progress') item.status = 'incomplete'
      const fleet = errorBody('openai', error).fleet
      const failed = response('failed', {
        output: outputOf(made.items),
        error: failureOf(error),
        usage: usage ? usageOf(usage) : null,
      })
      return begun + event(['response.failed', { response: failed, fleet }])
    },
    progress: () => ({ opened: opened || before().opened, next: opened ? next : before().next }),
  }
}

/** `before` tells how far the stream had come without this attempt, once it has something to say. */
export const createResponsesStreamWriter = (answer: ResponsesAnswer, before: () => Progress): ResponsesStreamWriter =>
  createResponsesWriter(answer, before, true)

export const createResponsesWholeWriter = (answer: ResponsesAnswer): ReplyWriter =>
  createResponsesWriter(answer, () => notBegun, false)
