import { headerName } from './http1-names'

/** The head of an HTTP/1.x response, and the framing of the body that follows from it. */
export interface ResponseHead {
  readonly status: number
  /** Lower-case names, values joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly framing: Framing
  /** The node lets us send another request on this connection. */
  readonly keepAlive: boolean
  /** For how long it promised to keep the connection open while idle, in ms; infinite where it did not say. */
  readonly keepAliveMs: number
}

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until_close' }

const NONE: Framing = { kind: 'none' }
const CHUNKED: Framing = { kind: 'chunked' }
const UNTIL_CLOSE: Framing = { kind: 'until_close' }

/** The peer does not speak HTTP/1.x as we understand it; becomes a failure of class `protocol`. */
export class FramingError extends Error {}

export const HEAD_LIMIT_BYTES = 64 * 1024

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const ZERO = 0x30
const ONE = 0x31
const NO_BREAK_SPACE = 0xa0
const PREFIX = 'HTTP/1.'
const VERSION_AT = PREFIX.length
/** Where the code stands in a status line as everybody writes it: `HTTP/1.1 200 OK`. */
const CODE_AT = VERSION_AT + 2
const CODE_END = CODE_AT + 3
const STATUS_LINE = /^HTTP\/1\.([01]) +([1-9]\d\d)(?: .*)?$/

/** Whether these first bytes can still become a status line: anything else is refused at once, not after 64 KB. */
export const looksLikeHead = (bytes: Buffer): boolean => {
  const length = Math.min(bytes.length, PREFIX.length)
  for (let at = 0; at < length; at++) if (bytes[at] !== PREFIX.charCodeAt(at)) return false
  return true
}

/** Index just after the empty line that ends the head, or -1. Bare LF line ends are accepted. */
export const headEnd = (bytes: Buffer, from: number): number => {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3
  }
  return -1
}

/**
 * Parses a whole head, the closing empty line included; it is the first `length` of the bytes. Throws `FramingError`.
 * Values are slices of one string: to make each from its bytes would cost several times as much.
 */
export const parseHead = (bytes: Buffer, length: number = bytes.length): ResponseHead => {
  const text = bytes.toString('latin1', 0, length)
  let end = text.indexOf('\n')
  const status = statusOf(text, lineEnd(text, 0, end))

  // A literal: objects of `Object.create(null)` are dictionaries, several times as slow for a handful of names.
  const headers = { __proto__: null } as unknown as Record<string, string>
  for (let start = end + 1; ; start = end + 1) {
    end = text.indexOf('\n', start)
    const stop = lineEnd(text, start, end)
    if (stop === start) break
    addHeader(headers, text, start, stop)
  }
  // Both lengths at once is how requests and answers get out of step: read the chunks, then drop the connection.
  const isAmbiguous = headers['transfer-encoding'] !== undefined && headers['content-length'] !== undefined
  return {
    status,
    headers,
    framing: framingOf(status, headers),
    keepAlive: !isAmbiguous && keepsAlive(headers.connection, text.charCodeAt(VERSION_AT) === ONE),
    keepAliveMs: promisedIdleMs(headers['keep-alive']),
  }
}

/** Where the line that its LF ends at `end` has its last character. */
const lineEnd = (text: string, start: number, end: number): number =>
  end > start && text.charCodeAt(end - 1) === CR ? end - 1 : end

/** The code of the status line, which is the text before `end`. */
const statusOf = (text: string, end: number): number => {
  const code = usualStatus(text, end)
  if (code !== undefined) return code
  const match = STATUS_LINE.exec(text.slice(0, end))
  if (!match) throw new FramingError('the answer does not begin with an HTTP/1.x status line')
  return Number(match[2])
}

const usualStatus = (text: string, end: number): number | undefined => {
  const version = text.charCodeAt(VERSION_AT)
  const firstReturn = text.indexOf('\r')
  const isUsual =
    text.startsWith(PREFIX) &&
    (version === ONE || version === ZERO) &&
    text.charCodeAt(CODE_AT - 1) === SPACE &&
    (end === CODE_END || (end > CODE_END && text.charCodeAt(CODE_END) === SPACE)) &&
    (firstReturn === -1 || firstReturn >= end)
  if (!isUsual) return undefined
  let code = 0
  for (let at = CODE_AT; at < CODE_END; at++) {
    const digit = text.charCodeAt(at) - ZERO
    if (digit < 0 || digit > 9) return undefined
    code = code * 10 + digit
  }
  return code >= 100 ? code : undefined
}

const addHeader = (headers: Record<string, string>, text: string, start: number, stop: number): void => {
  const colon = text.indexOf(':', start)
  if (colon <= start || colon >= stop || text.charCodeAt(start) <= SPACE) {
    throw new FramingError('the answer has a malformed header line')
  }
  const name = headerName(text, start, colon)
  let from = colon + 1
  let to = stop
  while (from < to && isBlank(text.charCodeAt(from))) from += 1
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1
  const value = text.slice(from, to)
  const earlier = headers[name]
  headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
}

const isBlank = (code: number): boolean => code === SPACE || (code >= TAB && code <= CR) || code === NO_BREAK_SPACE

const keepsAlive = (connection: string | undefined, isHttp11: boolean): boolean => {
  if (connection === undefined) return isHttp11
  return isHttp11 ? !/close/i.test(connection) : /keep-alive/i.test(connection)
}

const promisedIdleMs = (keepAlive: string | undefined): number => {
  const seconds = keepAlive === undefined ? null : /timeout=(\d+)/i.exec(keepAlive)
  return seconds ? Number(seconds[1]) * 1_000 : Number.POSITIVE_INFINITY
}

const framingOf = (status: number, headers: Readonly<Record<string, string>>): Framing => {
  if (status === 204 || status === 304) return NONE
  const coding = headers['transfer-encoding']?.toLowerCase()
  if (coding === 'chunked') return CHUNKED
  if (coding !== undefined && coding !== 'identity') {
    throw new FramingError('the answer uses a transfer coding that was not asked for')
  }
  const length = headers['content-length']
  return length === undefined ? UNTIL_CLOSE : { kind: 'length', length: parseLength(length) }
}

const parseLength = (value: string): number => {
  if (/^\d{1,15}$/.test(value)) return Number(value)
  const [first = '', ...repeated] = value.split(',').map((part) => part.trim())
  if (!/^\d{1,15}$/.test(first) || repeated.some((part) => part !== first)) {
    throw new FramingError('the answer has an invalid content-length')
  }
  return Number(first)
}
