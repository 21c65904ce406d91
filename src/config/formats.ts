import { normalizeBaseUrl } from '../domain/base-url'
import { parseDuration } from './duration'
import { parseListener } from './listen'
import type { ProblemCode } from './problem'
import type { Format, TextShape } from './shape'

export type Decoded = { readonly ok: true; readonly value: unknown } | Refused

export interface Refused {
  readonly ok: false
  readonly code: ProblemCode
  /** Follows the key's path: `must be …`. A message without the path stands in `message`. */
  readonly says?: string
  readonly message?: string
  readonly suggestion?: string
  readonly notes?: readonly string[]
}

type Read = (text: string, shape: TextShape) => Decoded

const fine = (value: unknown): Decoded => ({ ok: true, value })

/** Says what was written only where that cannot be a secret. */
const wrong = (says: string): Decoded => ({ ok: false, code: 'unknown_value', says })

const quote = (text: string): string => JSON.stringify(text)

const readDuration: Read = (text, { minDuration = '0s', maxDuration = '24d' }) => {
  const rule = `must be a duration with a unit (ms, s, m, h, d) from ${minDuration} to ${maxDuration}`
  const ms = parseDuration(text)
  if (ms === undefined) return wrong(`${rule}, such as "30s", not ${quote(text)}`)
  const isInRange = ms >= (parseDuration(minDuration) ?? 0) && ms <= (parseDuration(maxDuration) ?? Infinity)
  return isInRange ? fine(ms) : { ok: false, code: 'out_of_range', says: `${rule}, not ${quote(text)}` }
}

/** Ollama reads Go's durations: it knows no days, and a negative one means for ever but needs a unit. */
const readKeepAlive: Read = (text) => {
  if (text === '-1') return fine('-1m')
  const ms = parseDuration(text)
  if (ms === undefined)
    return wrong(`must be a duration with a unit, such as "30m", or "-1" for ever, not ${quote(text)}`)
  return fine(text.endsWith('d') ? `${ms / 3_600_000}h` : text)
}

const readListener: Read = (text) => {
  const listener = parseListener(text)
  if (listener) return fine(listener)
  return wrong(
    `must be an address and a port, such as "127.0.0.1:11435", ":11435" or "[::1]:11435", not ${quote(text)}`,
  )
}

const readBaseUrl: Read = (text) => {
  const result = normalizeBaseUrl(text)
  return 'url' in result ? fine(result.url) : wrong(result.problem)
}

/** `/` and `#` would make `node/model` and `#tag` ambiguous. */
const NAME = /^[^\s/#\p{C}]{1,64}$/u
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
const KEY_HASH = /^sha256:([0-9a-f]{64})$/i

/** A name that a node or a key may have. */
export const isEntryName = (text: string): boolean => NAME.test(text)

/** How each format of text is read: the decoded value, or what is wrong, as it follows the key's name. */
export const formats: Readonly<Record<Format, Read>> = {
  duration: readDuration,
  keep_alive: readKeepAlive,
  listen: readListener,
  base_url: readBaseUrl,
  name: (text) =>
    isEntryName(text)
      ? fine(text)
      : wrong(`must be 1 to 64 characters without white space, / and #, not ${quote(text)}`),
  variable: (text) =>
    VARIABLE.test(text) ? fine(text) : wrong('must be the name of an environment variable, never the key itself'),
  key_hash: (text) => {
    const digits = KEY_HASH.exec(text)?.[1]
    if (digits) return fine(digits.toLowerCase())
    return wrong('must be "sha256:" and 64 hex digits, as `fleet keys add` prints it')
  },
  text: (text) => (text.trim() === '' ? wrong('must not be empty') : fine(text)),
  path: fine,
}
