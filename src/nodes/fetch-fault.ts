import type { Failure } from '../domain/facts'

/** What was known about a control call when it broke. */
export interface BrokenCall {
  readonly url: string
  readonly bytes: number
  readonly elapsedMs: number
  /** The response head had arrived. */
  readonly answered: boolean
  /** Which of the two signals ended it, if one did. */
  readonly ended?: 'deadline' | 'caller'
}

const REFUSED = new Set(['ECONNREFUSED', 'FailedToOpenSocket', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN'])
const CLOSED = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ConnectionClosed', 'UND_ERR_SOCKET'])
const UNKNOWN_NAME = new Set([
  'ENOTFOUND',
  'ENODATA',
  'ESERVFAIL',
  'ENONAME',
  'EAI_AGAIN',
  'EAI_NONAME',
  'EAI_NODATA',
  'EAI_FAIL',
])
const BAD_TLS = /^(?:EPROTO|ERR_TLS|ERR_SSL|CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|UNKNOWN_CERT)/
const UNDECODABLE = /^(?:Zlib|Brotli|Zstd|Decompression|InvalidGzip)/i

/** `scheme://host:port/path` without anything that could be a secret. */
export const placeOf = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed ? `${parsed.origin}${parsed.pathname}` : url
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? url

/**
 * The class and a readable text for whatever `fetch` threw. The text is our own: Bun's speaks to the author of a
 * program ("pass `verbose: true`"), and some of its errors have none at all.
 */
export const failureOf = (error: unknown, call: BrokenCall): Failure => {
  const code = codeOf(error)
  const known = { bytes: call.bytes, elapsedMs: call.elapsedMs }
  const fail = (kind: Failure['class'], message: string): Failure => ({ class: kind, message, ...known })
  const host = hostOf(call.url)
  const place = placeOf(call.url)

  if (call.ended) return fail(call.answered ? 'idle_timeout' : 'first_byte_timeout', unansweredText(place, call))
  if (REFUSED.has(code))
    return fail('connect', `${host} cannot be reached (${code}): nothing listens there, or a firewall refuses`)
  if (code === 'ETIMEDOUT')
    return fail('connect_timeout', `${host} did not accept a connection within ${call.elapsedMs} ms`)
  if (UNKNOWN_NAME.has(code)) return fail('dns', `The host name in ${host} is unknown (${code})`)
  if (BAD_TLS.test(code))
    return fail(
      'tls',
      `No TLS connection to ${host} (${code}): its certificate is not trusted, or it speaks plain http`,
    )
  if (CLOSED.has(code)) return fail('reset', closedText(place, call))
  if (UNDECODABLE.test(code))
    return fail('bad_content', `${place} sent a compressed body that cannot be decoded (${code})`)
  return fail('protocol', `${place} did not answer as an HTTP/1.1 server (${code})`)
}

const unansweredText = (place: string, call: BrokenCall): string => {
  const how = call.ended === 'deadline' ? 'within' : 'until the call was given up after'
  return call.answered
    ? `${place} began to answer but did not end ${how} ${call.elapsedMs} ms (${call.bytes} bytes came)`
    : `${place} did not answer ${how} ${call.elapsedMs} ms`
}

const closedText = (place: string, call: BrokenCall): string =>
  call.answered
    ? `${place} closed the connection in the middle of its answer, after ${call.bytes} bytes`
    : `${place} closed the connection before it answered`

const codeOf = (error: unknown): string => {
  if (typeof error !== 'object' || error === null) return String(error) || 'unknown'
  const { code, name } = error as { code?: unknown; name?: unknown }
  if (typeof code === 'string' && code) return code
  return typeof name === 'string' && name ? name : 'unknown'
}
