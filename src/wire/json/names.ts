/**
 * Member names and other small words, the same few hundred in all bodies: each is made into a string once and found again
 * by its bytes. Making it anew for every member is garbage for every member.
 */
import { decode } from '../bytes'

/** No longer than this, in bytes. */
const maxLength = 24
/** A power of two. Two words may share a place and its neighbour; a third replaces the older, so the table never grows. */
const places = 1_024
const known: string[] = new Array(places).fill('')

const backslash = 0x5c

const isAt = (text: string, bytes: Uint8Array, start: number): boolean => {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) !== bytes[start + at]) return false
  return true
}

/** The word from `start` to `end`; undefined when it is longer than a name, or holds an escape or more than ASCII. */
export const nameAt = (bytes: Uint8Array, start: number, end: number): string | undefined => {
  const length = end - start
  if (length > maxLength) return undefined
  let hash = length
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte >= 0x80 || byte === backslash) return undefined
    hash = (Math.imul(hash, 31) + byte) | 0
  }
  const place = (hash ^ (hash >>> 10)) & (places - 1)
  const newer = known[place] as string
  if (newer.length === length && isAt(newer, bytes, start)) return newer
  const older = known[place ^ 1] as string
  if (older.length === length && isAt(older, bytes, start)) return older
  const text = decode(bytes.subarray(start, end))
  known[place ^ 1] = newer
  known[place] = text
  return text
}
