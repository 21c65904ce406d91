/** Repair in translated answers. */
import type { ReplyEvent } from '../canonical'
import { parseReply } from '../json/values'
import type { Repair } from './repair'
import { isCut, maxHeldLength } from './repair'

interface Held {
  readonly index: number
  readonly name: string
  text: string
  /** It was looked at since it last grew, and is no whole object. */
  isPart: boolean
}

/**
 * A call is told as it begins, its arguments once they are whole: all else passes at once. Nodes may send the fragments of
 * parallel calls in any order and text between them, so only the end of the answer shows that a call is broken.
 */
export const createEventRepairer = (repair: Repair): ((event: ReplyEvent) => readonly ReplyEvent[]) => {
  const held = new Map<number, Held>()
  let length = 0
  let gaveUp = false

  const release = (calls: readonly Held[], repairs: boolean): ReplyEvent[] =>
    calls.flatMap(({ index, name, text }): ReplyEvent[] => {
      held.delete(index)
      length -= text.length
      const fragment = repairs ? repair.apply(name, text) : text
      return fragment === '' ? [] : [{ type: 'arguments', index, fragment }]
    })

  const releaseAll = (repairs: boolean): ReplyEvent[] => release([...held.values()], repairs)

  const hold = (call: Held, text: string): ReplyEvent[] => {
    call.text += text
    call.isPart = false
    length += text.length
    gaveUp = length > maxHeldLength
    return gaveUp ? releaseAll(false) : []
  }

  const isPart = (call: Held): boolean => {
    call.isPart ||= call.text.at(-1) !== '}' || parseReply(call.text) === undefined
    return call.isPart
  }

  return (event) => {
    if (gaveUp || event.type === 'usage') return [event]
    if (event.type === 'call') {
      const call = { index: event.index, name: event.name, text: '', isPart: false }
      held.set(event.index, call)
      return [{ ...event, arguments: '' }, ...hold(call, event.arguments)]
    }
    if (event.type === 'arguments') {
      const call = held.get(event.index)
      return call ? hold(call, event.fragment) : [event]
    }
    if (event.type === 'text' || event.type === 'reasoning') {
      const whole = [...held.values()].filter((call) => !isPart(call))
      return [...release(whole, false), event]
    }
    const repairs = event.type !== 'error' && !(event.type === 'finish' && isCut(event.reason))
    return [...releaseAll(repairs), event]
  }
}
