/** Canonical events -> what an Anthropic client reads, as events of a stream or as one message. */
import { argumentsObject } from './calls'
import type { FinishReason, ReplyEvent } from './canonical'
import type { Json } from './json/values'
import { parseReply } from './json/values'
import type { ReplyWriter, UsageEvent } from './replies'

export interface AnthropicAnswer {
  /** Ours; the answer's id is derived from it. */
  readonly request: string
  /** As the client asked for it. */
  readonly model: string
  /** Our estimate of the prompt; a stream begins before the node tells. */
  readonly promptTokens: number
}

/** A block of the answer as it grows. */
interface Block {
  readonly kind: 'text' | 'thinking' | 'tool'
  /** On `tool`; `input` is all of its JSON text so far. */
  readonly call?: { readonly index: number; readonly id: string; readonly name: string; input: string }
  /** What it says, or the JSON text of its input, as far as the client has not got it. */
  text: string
  isOpen: boolean
}

interface Ending {
  finish?: ReplyEvent & { readonly type: 'finish' }
  usage?: UsageEvent
}

const reasons: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

const stopOf = ({ finish }: Ending): Json => ({
  stop_reason: finish?.stoppedBy === undefined ? reasons[finish?.reason ?? 'stop'] : 'stop_sequence',
  stop_sequence: finish?.stoppedBy ?? null,
})

/** Here the tokens of the prompt are those that were not in a cache. */
const usageOf = ({ tokensIn, tokensOut = 0, cachedIn = 0 }: Partial<UsageEvent>, promptTokens: number): Json => ({
  input_tokens: Math.max(0, (tokensIn ?? promptTokens) - cachedIn),
  output_tokens: tokensOut,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cachedIn,
})

const messageOf = (answer: AnthropicAnswer, content: readonly Json[], stop: Json, usage: Json): Json => ({
  id: `msg_${answer.request.replace(/^req_/, '')}`,
  type: 'message',
  role: 'assistant',
  model: answer.model,
  content,
  ...stop,
  usage,
})

/** Adds an event to the last block, or to the call that it belongs to, or begins the next block. */
const grow = (blocks: Block[], event: ReplyEvent): void => {
  if (event.type === 'call') {
    const { index, id, name, arguments: input } = event
    blocks.push({ kind: 'tool', call: { index, id, name, input }, text: input, isOpen: false })
  } else if (event.type === 'arguments') {
    const block = blocks.find(({ call }) => call?.index === event.index)
    if (!block?.call) return
    block.call.input += event.fragment
    block.text += event.fragment
  } else if (event.type === 'text' || event.type === 'reasoning') {
    const kind = event.type === 'text' ? 'text' : 'thinking'
    const last = blocks.at(-1)
    if (last?.kind === kind) last.text += event.text
    else blocks.push({ kind, text: event.text, isOpen: false })
  }
}

const emptyBlock = (): Block => ({ kind: 'text', text: '', isOpen: false })

const note = (ending: Ending, event: ReplyEvent): void => {
  if (event.type === 'finish') ending.finish = event
  else if (event.type === 'usage') ending.usage = event
}

const startOf = ({ kind, call }: Block): Json => {
  if (call) return { type: 'tool_use', id: call.id, name: call.name, input: {} }
  return kind === 'thinking' ? { type: kind, thinking: '', signature: '' } : { type: 'text', text: '' }
}

const deltaOf = ({ kind, text }: Block): Json => {
  if (kind === 'tool') return { type: 'input_json_delta', partial_json: text }
  return kind === 'thinking' ? { type: 'thinking_delta', thinking: text } : { type: 'text_delta', text }
}

/** Nothing more can belong to it: another block has begun, and the input of a call is a whole object. */
const isWhole = ({ call }: Block): boolean => call === undefined || parseReply(call.input) !== undefined

/**
 * One event with its name in front. Blocks never overlap here, while nodes may send the fragments of parallel calls in
 * any order: the first block that is not whole is told as it grows, the others wait until it is.
 */
export const createAnthropicStreamWriter = (answer: AnthropicAnswer): ReplyWriter => {
  const waiting: Block[] = []
  const ending: Ending = {}
  let begun = false
  let index = 0

  const event = (type: string, data: Json): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

  const begin = (): string => {
    if (begun) return ''
    begun = true
    const stop = { stop_reason: null, stop_sequence: null }
    return event('message_start', { message: messageOf(answer, [], stop, usageOf({}, answer.promptTokens)) })
  }

  /** What of a block the client has not got yet. */
  const tell = (block: Block): string => {
    const opening = block.isOpen ? '' : event('content_block_start', { index, content_block: startOf(block) })
    const delta = block.text === '' ? '' : event('content_block_delta', { index, delta: deltaOf(block) })
    block.isOpen = true
    block.text = ''
    return opening + delta
  }

  const close = ({ kind }: Block): string => {
    const signature = { index, delta: { type: 'signature_delta', signature: '' } }
    const signed = kind === 'thinking' ? event('content_block_delta', signature) : ''
    return signed + event('content_block_stop', { index: index++ })
  }

  const advance = (isLast: boolean): string => {
    let out = ''
    for (let block = waiting[0]; block !== undefined; block = waiting[0]) {
      out += tell(block)
      const isOver = isLast || (waiting.length > 1 && isWhole(block))
      if (!isOver) break
      out += close(block)
      waiting.shift()
    }
    return out
  }

  return {
    write(reply) {
      if (reply.type === 'done' || reply.type === 'error') return ''
      note(ending, reply)
      grow(waiting, reply)
      return begin() + advance(false)
    },
    end() {
      if (index === 0 && waiting.length === 0) waiting.push(emptyBlock())
      const rest = begin() + advance(true)
      const usage = usageOf(ending.usage ?? {}, answer.promptTokens)
      return rest + event('message_delta', { delta: stopOf(ending), usage }) + event('message_stop', {})
    },
  }
}

const contentOf = ({ kind, call, text }: Block): Json => {
  if (call) return { type: 'tool_use', id: call.id, name: call.name, input: argumentsObject(text) }
  return kind === 'thinking' ? { type: kind, thinking: text, signature: '' } : { type: 'text', text }
}

export const createAnthropicWholeWriter = (answer: AnthropicAnswer): ReplyWriter => {
  const blocks: Block[] = []
  const ending: Ending = {}
  return {
    write(event) {
      note(ending, event)
      grow(blocks, event)
      return ''
    },
    end() {
      const content = (blocks.length > 0 ? blocks : [emptyBlock()]).map(contentOf)
      const usage = usageOf(ending.usage ?? {}, answer.promptTokens)
      return JSON.stringify(messageOf(answer, content, stopOf(ending), usage))
    },
  }
}
