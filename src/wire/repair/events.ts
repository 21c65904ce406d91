/** Repair in translated answers. */
import type { ReplyEvent } from '../canonical'
import type { Repair } from './repair'
import { isCut, maxHeldLength } from './repair'

interface Held {
  readonly index: number
  readonly name: string
  text: string
}

/**
 * A call is told as it begins, its arguments once they are whole: all else passes at once. They are whole when anything
 * other than arguments follows, since nodes may send the fragments of parallel calls in any order.
 */
export const createEventRepairer = (repair: Repair): ((event: ReplyEvent) => readonly ReplyEvent[]) => {
  const held = new Map<number, Held>()
  let length = 0
  let gaveUp = false

  const release = (repairs: boolean): ReplyEvent[] => {
    const calls = [...held.values()]
    held.clear()
    length = 0
    return calls.flatMap(({ index, name, text }): ReplyEvent[] => {
      const fragment = repairs ? repair.apply(name, text) : text
      return fragment === '' ? [] : [{ type: 'arguments', index, fragment }]
    })
  }

  const hold = (call: Held, text: string): ReplyEvent[] => {
    call.text += text
    length += text.length
    gaveUp = length > maxHeldLength
    return gaveUp ? release(false) : []
  }

  return (event) => {
    if (gaveUp || event.type === 'usage') return [event]
    if (event.type === 'call') {
      const call = { index: event.index, name: event.name, text: '' }
      held.set(event.index, call)
      return [{ ...event, arguments: '' }, ...hold(call, event.arguments)]
    }
    if (event.type === 'arguments') {
      const call = held.get(event.index)
      return call ? hold(call, event.fragment) : [event]
    }
    const repairs = event.type !== 'error' && !(event.type === 'finish' && isCut(event.reason))
    return [...release(repairs), event]
  }
}
