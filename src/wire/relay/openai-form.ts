/**
 * Where llama-server speaks OpenAI's protocol with an accent: the role stands in a piece of its own in front of the first
 * text, and that piece is missing when the first token is only a part of a character (most emoji are several). Clients that
 * take the kind of message from the role then lose what comes behind it, such as the usage.
 */
import { encode, find, splice, startsWithAt } from '../bytes'
import { endOfEvent } from './gate'

const choices = encode('"choices":')
const emptyList = encode('[]')
const role = encode('"role":')
/** Quotes inside of text are escaped, so neither of them can stand in what the model says. */
const deltas = [encode('"delta":{'), encode('"delta": {')]
const closing = 0x7d

/** Index behind the brace that opens the first delta, or -1. */
const insideDelta = (event: Uint8Array): number => {
  for (const delta of deltas) {
    const at = find(event, delta)
    if (at >= 0) return at + delta.length
  }
  return -1
}

const withRole = (events: Uint8Array, start: number, end: number): Uint8Array => {
  const event = events.subarray(start, end)
  const inside = insideDelta(event)
  if (inside < 0 || find(event, role) >= 0) return events
  const text = event[inside] === closing ? '"role":"assistant"' : '"role":"assistant",'
  return splice(events, [{ start: start + inside, end: start + inside, text }])
}

/** What has to be put right at the beginning of a stream, and nowhere behind it. */
export interface Opening {
  /** Gets whole events in order and returns what goes on: the very same array when there is nothing to change. */
  edit(events: Uint8Array): Uint8Array
  /** The answer has begun: all that follows may pass as it is. */
  over(): boolean
}

export const createOpenAiOpening = (): Opening => {
  let over = false
  return {
    edit(events) {
      for (let start = 0, end = 0; !over && start < events.length; start = end) {
        end = endOfEvent(events, start)
        const member = find(events, choices, start)
        if (member < 0) return events
        // Some engines tell other things, without any choice, before the answer begins.
        if (member >= end || startsWithAt(events, emptyList, member + choices.length)) continue
        over = true
        return withRole(events, start, end)
      }
      return events
    },
    over: () => over,
  }
}
