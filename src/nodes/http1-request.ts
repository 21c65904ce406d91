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

/** Up to here head and body travel in one write, one packet for most requests; above, the copy would cost more. */
const SINGLE_WRITE_BYTES = 64 * 1024

const UNSAFE_IN_PATH = /[^\x21-\x7e]/
const UNSAFE_IN_HEADER = /[\r\n\0]/

/** Splits a URL into origin and path without parsing it: this runs for every request. */
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

/** The bytes of one request, in the pieces in which they are written. Throws a `NodeFault` on unsafe text. */
export const encodeRequest = (host: string, path: string, request: UpstreamSend): Uint8Array[] => {
  if (UNSAFE_IN_PATH.test(path)) throw unsendable('the path has characters that need encoding')
  const { body } = request
  let head = `${request.method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n`
  if (body.length > 0 || request.method === 'POST') head += `content-length: ${body.length}\r\n`
  for (const name in request.headers) {
    const value = request.headers[name] as string
    if (UNSAFE_IN_HEADER.test(value)) throw unsendable(`the header ${name} has a line break`)
    head += `${name}: ${value}\r\n`
  }
  head += '\r\n'

  if (head.length + body.length > SINGLE_WRITE_BYTES) return [Buffer.from(head), body]
  const headBytes = Buffer.byteLength(head)
  const whole = Buffer.allocUnsafe(headBytes + body.length)
  whole.write(head)
  whole.set(body, headBytes)
  return [whole]
}

const unsendable = (message: string): NodeFault =>
  new NodeFault({ class: 'protocol', message: `the request cannot be sent: ${message}`, bytes: 0, elapsedMs: 0 })
