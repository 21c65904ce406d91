import { concat, find, findLast } from '../bytes'

const newline = 0x0a

/** A record that grows beyond this is let through in pieces rather than held in memory. */
const maxHeldBytes = 1_048_576

/** Index behind the last complete record of `bytes`, or 0. */
export type Boundary = (bytes: Uint8Array) => number

const blankLine = new Uint8Array([newline, newline])
const blankLineCrlf = new Uint8Array([newline, 0x0d, newline])

const behind = (at: number, length: number): number => (at < 0 ? 0 : at + length)

const endsWithEvent = (bytes: Uint8Array): boolean =>
  bytes[bytes.length - 1] === newline && bytes[bytes.length - 2] === newline

export const afterLastEvent: Boundary = (bytes) =>
  // As nearly every piece does: a node writes an event at a time.
  endsWithEvent(bytes)
    ? bytes.length
    : Math.max(
        behind(findLast(bytes, blankLine), blankLine.length),
        behind(findLast(bytes, blankLineCrlf), blankLineCrlf.length),
      )

export const afterLastLine: Boundary = (bytes) => bytes.lastIndexOf(newline) + 1

/** Index behind the event that `at` lies in. */
export const endOfEvent = (bytes: Uint8Array, at: number): number => {
  const ends = [behind(find(bytes, blankLine, at), 2), behind(find(bytes, blankLineCrlf, at), 3)].filter(
    (end) => end > 0,
  )
  return ends.length > 0 ? Math.min(...ends) : bytes.length
}

/** Lets only whole records through, so that an edit never meets one that is cut in half. */
export interface Gate {
  push(chunk: Uint8Array): Uint8Array | undefined
  /** The beginning of a record waits for its end. */
  holds(): boolean
  end(): Uint8Array | undefined
}

/** `edit` gets whole records and returns what goes on: the same array when there is nothing to change. */
export const createGate = (boundary: Boundary, edit: (records: Uint8Array) => Uint8Array | undefined): Gate => {
  let held: Uint8Array[] = []
  let heldBytes = 0

  const hold = (rest: Uint8Array): void => {
    if (rest.length === 0) return
    held.push(rest)
    heldBytes += rest.length
  }

  const release = (): Uint8Array => {
    const all = concat(held)
    held = []
    heldBytes = 0
    return all
  }

  return {
    push(chunk) {
      if (heldBytes === 0 && boundary(chunk) === chunk.length) return edit(chunk)
      hold(chunk)
      if (heldBytes > maxHeldBytes) return edit(release())
      // A record ends with a line end: without one in this piece there is nothing new to see.
      if (chunk.indexOf(newline) < 0) return undefined
      const all = release()
      const end = boundary(all)
      if (end === all.length) return edit(all)
      hold(all.subarray(end))
      return end === 0 ? undefined : edit(all.subarray(0, end))
    },
    holds: () => heldBytes > 0,
    end: () => (heldBytes === 0 ? undefined : edit(release())),
  }
}
