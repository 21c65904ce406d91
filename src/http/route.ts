import type { RouterError } from '../domain/errors'
import type { DialectName } from '../domain/job'
import type { Access, Caller } from './auth'
import type { Holder } from './buffered'

/** What turns an error into a whole answer: a dialect, or the native shape. */
export interface Refuser {
  /** Absent: the native shape, or one of several. */
  readonly name?: DialectName
  refuse(error: RouterError, request?: Request): Response
}

/** One call as a route sees it, after the checks that all routes share. It holds its body until the request is over. */
export interface Call extends Holder {
  readonly request: Request
  /** Ours, `req_…`; also in the `X-Request-Id` of the answer. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly path: string
  /** Whose key it was; absent when the router is open. */
  readonly caller?: Caller
  /** Closes the connection soon, whatever the client has not read. */
  hangUp(): void
  /** The whole request has come: from here on its connection may be silent for as long as the answer needs. */
  received(): void
  /** Nothing more of the answer comes: a connection that stays idle is closed after a while. */
  answered(): void
}

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  /** Starts with a slash; `:name` is one segment, a final `/*` is the rest, slashes included. */
  readonly path: string
  readonly access: Access
  readonly refuser: Refuser
  /** Its answer may take as long as it needs; see `Call.received`. */
  readonly patient?: true
  handle(call: Call): Response | Promise<Response>
}

/** The path of a URL, percent-encoding kept, without query and fragment. */
export const pathOf = (url: string): string => {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  const end = url.slice(start).search(/[?#]/)
  return end < 0 ? url.slice(start) : url.slice(start, start + end)
}

/** What follows `prefix` in a path, decoded where it is valid percent-encoding, raw slashes kept. */
export const restOf = (path: string, prefix: string): string => {
  const raw = path.slice(path.indexOf(prefix) + prefix.length)
  try {
    return decodeURIComponent(raw)
  } catch {
    return raw
  }
}
