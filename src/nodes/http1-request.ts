import { NodeFault } from '../ports/node-gateway'
import type { UpstreamSend } from './upstream'

/** Where a request goes: parsed once per origin and kept with its idle connections. */
export interface Target {
  /** `http://host:port` as it stands in the node's URL. */
  readonly origin: string
  readonly hostname: string
  readonly port: number
  readonly tls: boolean
  /** Value of the `host` header. */
  readonly host: string
}

/** What requests to one URL have in common. Clients use few, so each is taken apart once and remembered. */
export interface Route {
  readonly target: Target
  readonly path: string
  /** Those that were last sent. */
  readonly heads: RequestHead[]
}

/** The head of requests that differ only in their bodies, as bytes. */
export interface RequestHead {
  readonly method: UpstreamSend['method']
  readonly headers: UpstreamSend['headers']
  /** All that comes before the length of the body, and all that comes after it. */
  readonly before: Uint8Array
  readonly after: Uint8Array
  /** It tells the length of its body; only a request without one may not. */
  readonly hasLength: boolean
}

/** Up to here head and body travel in one write, one packet for most requests; above, the copy would cost more. */
const SINGLE_WRITE_BYTES = 64 * 1024

/** Of one URL; they differ in their headers. Past this the memory is simply emptied. */
const MAX_HEADS = 8

const UNSAFE_IN_PATH = /[^\x21-\x7e]/
const UNSAFE_IN_HEADER = /[\r\n\0]/

/** Splits a URL into origin and path without parsing it. */
export const splitUrl = (url: string): { origin: string; path: string } => {
  const slash = url.indexOf('/', url.indexOf('://') + 3)
  return slash === -1 ? { origin: url, path: '/' } : { origin: url.slice(0, slash), path: url.slice(slash) }
}

/** Throws a `NodeFault` for what is not an http or https origin. */
export const parseTarget = (origin: string): Target => {
  const url = URL.parse(origin)
  const tls = url?.protocol === 'https:'
  if (!url || (!tls && url.protocol !== 'http:')) throw unsendable(`${origin} is not an http or https address`)
  return {
    origin,
    hostname: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
    port: url.port === '' ? (tls ? 443 : 80) : Number(url.port),
    tls,
    host: url.host,
  }
}

/** The head of this request; requests with the same object of headers share it. Throws a `NodeFault` on unsafe text. */
export const headOf = (route: Route, request: UpstreamSend): RequestHead => {
  const hasLength = request.body.length > 0 || request.method === 'POST'
  for (const head of route.heads) {
    if (head.headers === request.headers && head.method === request.method && head.hasLength === hasLength) return head
  }
  const head = makeHead(route, request, hasLength)
  if (route.heads.length >= MAX_HEADS) route.heads.length = 0
  route.heads.push(head)
  return head
}

const makeHead = ({ target, path }: Route, { method, headers }: UpstreamSend, hasLength: boolean): RequestHead => {
  if (UNSAFE_IN_PATH.test(path)) throw unsendable('the path has characters that need encoding')
  const before = `${method} ${path} HTTP/1.1\r\nhost: ${target.host}\r\naccept-encoding: identity\r\n`
  let after = ''
  for (const name in headers) {
    const value = headers[name] as string
    if (UNSAFE_IN_HEADER.test(value)) throw unsendable(`the header ${name} has a line break`)
    after += `${name}: ${value}\r\n`
  }
  return {
    method,
    headers,
    hasLength,
    before: Buffer.from(hasLength ? `${before}content-length: ` : before),
    after: Buffer.from(hasLength ? `\r\n${after}\r\n` : `${after}\r\n`),
  }
}

/**
 * Where requests are put together to be written: the socket has taken what it takes when its `write` returns, so one place
 * serves all. A buffer for each request would be the largest thing that is made for it.
 */
export const packet: Buffer = Buffer.allocUnsafeSlow(SINGLE_WRITE_BYTES)

const sizeOf = ({ before, after, hasLength }: RequestHead, body: Uint8Array): number =>
  before.length + (hasLength ? String(body.length).length : 0) + after.length + body.length

/** Puts the whole request into the packet; tells how many bytes it is, or 0 when it is too large for that. */
export const pack = (head: RequestHead, body: Uint8Array): number => {
  const size = sizeOf(head, body)
  if (size > SINGLE_WRITE_BYTES) return 0
  packet.set(head.before)
  if (head.hasLength) packet.write(String(body.length), head.before.length, 'latin1')
  packet.set(head.after, size - body.length - head.after.length)
  packet.set(body, size - body.length)
  return size
}

/** The pieces in which a larger request is written. */
export const pieces = ({ before, after, hasLength }: RequestHead, body: Uint8Array): Uint8Array[] => [
  Buffer.concat([before, Buffer.from(hasLength ? String(body.length) : ''), after]),
  body,
]

const unsendable = (message: string): NodeFault =>
  new NodeFault({ class: 'protocol', message: `the request cannot be sent: ${message}`, bytes: 0, elapsedMs: 0 })
