import type { DialectName } from './job'

/** The closed set of reasons for which a request can end without an answer. `wire/errors.ts` maps them per dialect. */
export type ErrorCode =
  | 'invalid_request'
  | 'context_too_large'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'model_not_found'
  | 'response_not_found'
  | 'request_too_large'
  | 'queue_full'
  | 'upstream_rejected'
  | 'upstream_failed'
  | 'upstream_timeout'
  | 'no_capacity'
  | 'deadline_exceeded'
  | 'draining'
  | 'loop_detected'
  | 'not_supported'
  | 'client_disconnected'
  | 'internal'

/** The HTTP status of each code; `upstream_rejected` carries the node's own. */
const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  context_too_large: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  model_not_found: 404,
  response_not_found: 404,
  request_too_large: 413,
  queue_full: 429,
  upstream_rejected: 400,
  upstream_failed: 502,
  upstream_timeout: 504,
  no_capacity: 503,
  deadline_exceeded: 504,
  draining: 503,
  loop_detected: 508,
  not_supported: 400,
  client_disconnected: 499,
  internal: 500,
}

/** Anthropic's own status for a server that has no room; its clients wait and try again on it. */
const OVERLOADED = 529

/** The HTTP status that a client of this protocol gets. */
export const statusOf = (code: ErrorCode, dialect?: DialectName): number =>
  dialect === 'anthropic' && (code === 'no_capacity' || code === 'draining') ? OVERLOADED : STATUS[code]

/** Why one node could not take a request; shown in the error's `fleet` member and in the decision record. */
export interface NodeReason {
  readonly node: string
  readonly reason: string
  readonly need?: number
  readonly have?: number
  readonly unit?: string
}

export interface ErrorDetails {
  /** Status of an answer that a node gave and that is passed on (`upstream_rejected`). */
  readonly status?: number
  readonly retryAfterSeconds?: number
  readonly nodes?: readonly NodeReason[]
  /** The next step for the reader, one sentence. */
  readonly hint?: string
  /** The request field that is wrong, if one is. */
  readonly param?: string
  readonly requestId?: string
  /** Of a prompt that is too long: its tokens and those that fit. */
  readonly tokens?: { readonly need: number; readonly have: number }
  /** The upstream error's own type and code, kept where the client's dialect has a place for them. */
  readonly upstream?: { readonly type?: string; readonly code?: string | number }
}

/** The only error that crosses a folder. Its message is written for the client and never holds prompt text. */
export class RouterError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.name = 'RouterError'
    this.code = code
    this.details = details
  }

  with(details: ErrorDetails): RouterError {
    return new RouterError(this.code, this.message, { ...this.details, ...details }, this.cause)
  }

  /** Anything that is not ours is `internal`, with the cause kept for the log and out of the answer. */
  static from(error: unknown): RouterError {
    if (error instanceof RouterError) return error
    return new RouterError('internal', 'The router failed on this request.', {}, error)
  }
}
