const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: false })

export const encode = (text: string): Uint8Array => encoder.encode(text)

export const decode = (bytes: Uint8Array): string => decoder.decode(bytes)

/** One array of all the pieces; the very same array when there is only one. */
export const concat = (pieces: readonly Uint8Array[]): Uint8Array => {
  if (pieces.length === 1) return pieces[0] as Uint8Array
  let total = 0
  for (const piece of pieces) total += piece.length
  const whole = new Uint8Array(total)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** A Buffer's searches are native code and work on any byte array; a Buffer over it would cost three times the search. */
type Search = (this: Uint8Array, needle: Uint8Array, from: number) => number
const { indexOf, lastIndexOf } = Buffer.prototype as unknown as { indexOf: Search; lastIndexOf: Search }

/** Index of `needle` at or after `from`, or -1. */
export const find = (bytes: Uint8Array, needle: Uint8Array, from = 0): number => indexOf.call(bytes, needle, from)

/** Index of the last `needle` that starts at or before `from`, or -1. */
export const findLast = (bytes: Uint8Array, needle: Uint8Array, from = bytes.length): number =>
  lastIndexOf.call(bytes, needle, from)

export const startsWithAt = (bytes: Uint8Array, needle: Uint8Array, at: number): boolean => {
  if (at + needle.length > bytes.length) return false
  for (let i = 0; i < needle.length; i++) if (bytes[at + i] !== needle[i]) return false
  return true
}

/** Replaces the bytes from `start` up to `end` by `text`. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Applies edits that do not overlap. Everything else stays byte for byte; without edits it is the very same array. */
export const splice = (bytes: Uint8Array, edits: readonly Edit[]): Uint8Array => {
  if (edits.length === 0) return bytes
  const pieces: Uint8Array[] = []
  let copied = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    pieces.push(bytes.subarray(copied, edit.start), encode(edit.text))
    copied = edit.end
  }
  pieces.push(bytes.subarray(copied))
  return concat(pieces)
}
