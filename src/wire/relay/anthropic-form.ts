/**
 * Where llama-server speaks Anthropic's protocol with an accent. It opens each block as soon as it has something for it and
 * closes all of them at the end, while the protocol has one open at a time; it tells an error as the bare object; and it calls
 * the end at a stop sequence an end of turn. All else stays as it is.
 */
import { concat, decode, encode, find, splice } from '../bytes'
import type { Json } from '../json/values'
import { isObject, parseReply } from '../json/values'
import { errorOf } from '../replies'
import { endOfEvent } from './gate'

const endOfTurn = encode('"stop_reason":"end_turn","stop_sequence":"')
const atStopSequence = '"stop_reason":"stop_sequence","stop_sequence":"'

/** Of a whole answer or of events: the very same array when there is nothing to change. Text has its quotes escaped. */
export const tellStopSequence = (bytes: Uint8Array): Uint8Array => {
  const start = find(bytes, endOfTurn)
  return start < 0 ? bytes : splice(bytes, [{ start, end: start + endOfTurn.length, text: atStopSequence }])
}

/** One of these stands in every event that may have to go, or to change as a whole. */
const needles = ['event: content_block_st', '"signature_delta"', 'event: error'].map(encode)

const write = (data: Json): Uint8Array => encode(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)

const eventName = /^event: ?(.*)$/m
const eventData = /^data: ?(.*)$/m

const read = (event: Uint8Array): { readonly name: string; readonly data: Json } => {
  const text = decode(event)
  return {
    name: eventName.exec(text)?.[1]?.trim() ?? '',
    data: parseReply(eventData.exec(text)?.[1] ?? '') ?? {},
  }
}

interface Block {
  readonly index: number
  /** Such a block ends with a signature. */
  readonly thinks: boolean
}

const close = ({ index, thinks }: Block): Uint8Array[] => {
  const signature = { type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: '' } }
  return [...(thinks ? [write(signature)] : []), write({ type: 'content_block_stop', index })]
}

/** Gets whole events in order and returns what goes on: the very same array when there is nothing to change. */
export const createAnthropicForm = (): ((events: Uint8Array) => Uint8Array) => {
  const closed = new Set<number>()
  let open: Block | undefined

  const take = (event: Uint8Array): Uint8Array[] => {
    const { name, data } = read(event)
    const { index, content_block: block, delta } = data
    if (name === 'error' && errorOf(data) === undefined) {
      return [write({ type: 'error', error: { type: 'api_error', message: errorOf({ error: data })?.message } })]
    }
    if (typeof index !== 'number') return [event]
    if (name === 'content_block_start') {
      const before = open
      if (before) closed.add(before.index)
      open = { index, thinks: isObject(block) && block.type === 'thinking' }
      return [...(before ? close(before) : []), event]
    }
    const isLate = closed.has(index)
    if (name === 'content_block_stop') {
      if (open?.index === index) open = undefined
      return isLate ? [] : [event]
    }
    return isLate && isObject(delta) && delta.type === 'signature_delta' ? [] : [event]
  }

  return (events) => {
    const told = tellStopSequence(events)
    if (!needles.some((needle) => find(told, needle) >= 0)) return told
    const out: Uint8Array[] = []
    for (let start = 0, end = 0; start < told.length; start = end) {
      end = endOfEvent(told, start)
      out.push(...take(told.subarray(start, end)))
    }
    return concat(out)
  }
}
