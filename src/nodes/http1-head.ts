/** The head of an HTTP/1.x response, and the framing of the body that follows from it. */
export interface ResponseHead {
  readonly status: number
  /** Lower-case names, values joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly framing: Framing
  /** The node lets us send another request on this connection. */
  readonly keepAlive: boolean
  /** For how long it promised to keep the connection open while idle, in ms, if it said so. */
  readonly keepAliveMs?: number
}

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until_close' }

/** The peer does not speak HTTP/1.x as we understand it; becomes a failure of class `protocol`. */
export class FramingError extends Error {}

export const HEAD_LIMIT_BYTES = 64 * 1024

const LF = 0x0a
const CR = 0x0d
const PREFIX = Buffer.from('HTTP/1.')
const STATUS_LINE = /^HTTP\/1\.([01]) +([1-9]\d\d)(?: .*)?$/

/** Whether these first bytes can still become a status line: anything else is refused at once, not after 64 KB. */
export const looksLikeHead = (bytes: Buffer): boolean => {
  const length = Math.min(bytes.length, PREFIX.length)
  return bytes.compare(PREFIX, 0, length, 0, length) === 0
}

/** Index just after the empty line that ends the head, or -1. Bare LF line ends are accepted. */
export const headEnd = (bytes: Buffer, from: number): number => {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3
  }
  return -1
}

/** Parses a whole head, the closing empty line included. Throws `FramingError`. */
export const parseHead = (bytes: Buffer): ResponseHead => {
  const text = bytes.toString('latin1')
  let end = text.indexOf('\n')
  const match = STATUS_LINE.exec(line(text, 0, end))
  if (!match) throw new FramingError('the answer does not begin with an HTTP/1.x status line')

  // A literal: objects of `Object.create(null)` are dictionaries, several times as slow for a handful of names.
  const headers = { __proto__: null } as unknown as Record<string, string>
  for (let start = end + 1; ; start = end + 1) {
    end = text.indexOf('\n', start)
    const entry = line(text, start, end)
    if (entry === '') break
    addHeader(headers, entry)
  }
  const status = Number(match[2])
  const keepAlive = keepsAlive(headers, match[1] === '1')
  const keepAliveMs = promisedIdleMs(headers['keep-alive'])
  return {
    status,
    headers,
    framing: framingOf(status, headers),
    // Both lengths at once is how requests and answers get out of step: read the chunks, then drop the connection.
    keepAlive: keepAlive && !(headers['transfer-encoding'] !== undefined && headers['content-length'] !== undefined),
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
  }
}

const line = (text: string, start: number, end: number): string =>
  text.slice(start, text.charCodeAt(end - 1) === CR && end > start ? end - 1 : end)

const addHeader = (headers: Record<string, string>, entry: string): void => {
  const colon = entry.indexOf(':')
  if (colon <= 0 || entry.charCodeAt(0) <= 0x20) throw new FramingError('the answer has a malformed header line')
  const name = entry.slice(0, colon).trimEnd().toLowerCase()
  const value = entry.slice(colon + 1).trim()
  const earlier = headers[name]
  headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
}

const keepsAlive = (headers: Readonly<Record<string, string>>, isHttp11: boolean): boolean => {
  const connection = headers.connection?.toLowerCase()
  if (connection === undefined) return isHttp11
  return isHttp11 ? !connection.includes('close') : connection.includes('keep-alive')
}

const promisedIdleMs = (keepAlive: string | undefined): number | undefined => {
  const seconds = keepAlive === undefined ? null : /timeout=(\d+)/i.exec(keepAlive)
  return seconds ? Number(seconds[1]) * 1_000 : undefined
}

const framingOf = (status: number, headers: Readonly<Record<string, string>>): Framing => {
  if (status === 204 || status === 304) return { kind: 'none' }
  const coding = headers['transfer-encoding']?.toLowerCase()
  if (coding === 'chunked') return { kind: 'chunked' }
  if (coding !== undefined && coding !== 'identity') {
    throw new FramingError('the answer uses a transfer coding that was not asked for')
  }
  const length = headers['content-length']
  return length === undefined ? { kind: 'until_close' } : { kind: 'length', length: parseLength(length) }
}

const parseLength = (value: string): number => {
  if (/^\d{1,15}$/.test(value)) return Number(value)
  const [first = '', ...repeated] = value.split(',').map((part) => part.trim())
  if (!/^\d{1,15}$/.test(first) || repeated.some((part) => part !== first)) {
    throw new FramingError('the answer has an invalid content-length')
  }
  return Number(first)
}
