/**
 * Names of response headers, the same few from every engine: each is made into a lower-case string once and found again by
 * its characters in either case. Making them anew was the largest part of what reading a head cost.
 */

/** No longer than this, in characters. */
const MAX_LENGTH = 32
/** A power of two. A name that falls onto the place of another replaces it, so the table never grows. */
const PLACES = 256
const known: string[] = new Array(PLACES).fill('')

/** Of a character of a name: letters, digits and `-` keep their bits, capitals become small. */
const LOWER = 0x20

/** Whether it is a character of which `| LOWER` makes the lower case, and nothing else. */
const isPlain = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x2d || (code >= 0x30 && code <= 0x39)

const isAt = (name: string, text: string, start: number): boolean => {
  for (let at = 0; at < name.length; at++) {
    if (name.charCodeAt(at) !== (text.charCodeAt(start + at) | LOWER)) return false
  }
  return true
}

/** The name that stands from `start` to `end`, in lower case. */
export const headerName = (text: string, start: number, end: number): string => {
  const length = end - start
  let hash = length
  let isCommon = length <= MAX_LENGTH
  for (let at = start; isCommon && at < end; at++) {
    const code = text.charCodeAt(at)
    isCommon = isPlain(code)
    hash = (Math.imul(hash, 31) + (code | LOWER)) | 0
  }
  if (!isCommon) return text.slice(start, end).trimEnd().toLowerCase()
  const place = (hash ^ (hash >>> 8)) & (PLACES - 1)
  const candidate = known[place] as string
  if (candidate.length === length && isAt(candidate, text, start)) return candidate
  // Character by character: a slice would keep the whole head in memory.
  const codes = Array.from({ length }, (_, at) => text.charCodeAt(start + at) | LOWER)
  const name = String.fromCharCode(...codes)
  known[place] = name
  return name
}
