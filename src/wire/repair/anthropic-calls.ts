/** Calls in Anthropic's streams, for repair. In its whole answers they are objects, and never broken. */
import type { Json } from '../json/values'
import { isObject } from '../json/values'
import { isCut } from './repair'
import type { CallNews, CallReader } from './records'

const nothing: CallNews = { pieces: [] }

const placeOf = ({ index }: Json): number => (typeof index === 'number' ? index : 0)

/** That the next block begins shows that the one before it is whole; its own end does not, since cut ones have it too. */
const blockBegins = (json: Json): CallNews => {
  const block = isObject(json.content_block) ? json.content_block : {}
  const named = block.type === 'tool_use' ? { named: [[placeOf(json), String(block.name)] as const] } : {}
  return { pieces: [], ends: 'whole', ...named }
}

const blockGrows = (json: Json): CallNews => {
  const delta = isObject(json.delta) ? json.delta : {}
  const { type, partial_json: text } = delta
  if (type !== 'input_json_delta' || typeof text !== 'string' || text === '') return nothing
  return {
    pieces: [{ call: placeOf(json), text }],
    rewrite: ([repaired = '']) => ({ ...json, delta: { ...delta, partial_json: repaired } }),
  }
}

const messageEnds = ({ delta }: Json): CallNews => {
  const reason = isObject(delta) ? delta.stop_reason : undefined
  return typeof reason === 'string' ? { pieces: [], ends: isCut(reason) ? 'cut' : 'whole' } : nothing
}

export const readAnthropicCalls: CallReader = (json) => {
  if (json.type === 'content_block_start') return blockBegins(json)
  if (json.type === 'content_block_delta') return blockGrows(json)
  if (json.type === 'message_delta') return messageEnds(json)
  if (json.type === 'message_stop') return { pieces: [], ends: 'whole' }
  return json.type === 'error' ? { pieces: [], ends: 'cut' } : nothing
}
