/** The error table: what each code is in each dialect. */
import type { ErrorCode } from '../domain/errors'
import type { RouterError } from '../domain/errors'
import type { DialectName } from '../domain/job'
import type { Json } from './json/values'
import { compact } from './json/values'

interface Row {
  readonly status: number
  /** OpenAI's `type` and `code`. */
  readonly type: string
  readonly code: string | null
  /** Whether sending the same request again may help. */
  readonly retry: boolean
  /** `Retry-After` where the error does not bring its own, in seconds. */
  readonly retryAfterSeconds?: number
}

const invalid = 'invalid_request_error'
const server = 'server_error'

const table: Readonly<Record<ErrorCode, Row>> = {
  invalid_request: { status: 400, type: invalid, code: null, retry: false },
  not_supported: { status: 400, type: invalid, code: 'not_supported', retry: false },
  context_too_large: { status: 400, type: invalid, code: 'context_length_exceeded', retry: false },
  unauthorized: { status: 401, type: invalid, code: 'invalid_api_key', retry: false },
  forbidden: { status: 403, type: invalid, code: 'forbidden', retry: false },
  not_found: { status: 404, type: invalid, code: 'unknown_url', retry: false },
  model_not_found: { status: 404, type: invalid, code: 'model_not_found', retry: false },
  method_not_allowed: { status: 405, type: invalid, code: 'method_not_allowed', retry: false },
  request_too_large: { status: 413, type: invalid, code: 'request_too_large', retry: false },
  queue_full: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', retry: true, retryAfterSeconds: 1 },
  client_disconnected: { status: 499, type: invalid, code: 'client_disconnected', retry: false },
  internal: { status: 500, type: server, code: 'internal_error', retry: true },
  upstream_rejected: { status: 502, type: invalid, code: null, retry: false },
  upstream_failed: { status: 502, type: server, code: 'upstream_failed', retry: true },
  no_capacity: { status: 503, type: server, code: 'no_capacity', retry: true, retryAfterSeconds: 5 },
  draining: { status: 503, type: server, code: 'draining', retry: true, retryAfterSeconds: 5 },
  upstream_timeout: { status: 504, type: server, code: 'upstream_timeout', retry: true },
  deadline_exceeded: { status: 504, type: server, code: 'deadline_exceeded', retry: false },
  loop_detected: { status: 508, type: server, code: 'loop_detected', retry: false },
}

const isClientError = (status: number | undefined): status is number =>
  status !== undefined && status >= 400 && status <= 499

/** The HTTP status of an error; a node's own 4xx keeps its status. */
export const errorStatus = ({ code, details }: RouterError): number =>
  code === 'upstream_rejected' && isClientError(details.status) ? details.status : table[code].status

/** The member that every error of ours carries beside the dialect's own. */
export const fleetMember = ({ code, message, details }: RouterError): Json =>
  compact({
    code,
    request_id: details.requestId,
    message,
    nodes: details.nodes ?? [],
    hint: details.hint,
  })

const openaiError = ({ code, message, details }: RouterError): Json => ({
  message,
  type: details.upstream?.type ?? table[code].type,
  param: details.param ?? null,
  code: details.upstream?.code ?? table[code].code,
})

const shapes: Readonly<Record<DialectName, (error: RouterError) => unknown>> = {
  openai: openaiError,
  ollama: (error) => error.message,
  native: ({ code, message, details }) => compact({ code, message, param: details.param }),
}

/** The body of an error in the client's dialect, as plain data. */
export const errorBody = (dialect: DialectName, error: RouterError): Json => ({
  error: shapes[dialect](error),
  fleet: fleetMember(error),
})

/** Whole seconds, at least one. */
const retryAfter = ({ code, details }: RouterError): number | undefined => {
  const seconds = details.retryAfterSeconds ?? table[code].retryAfterSeconds
  return seconds === undefined ? undefined : Math.max(1, Math.ceil(seconds))
}

/** SDKs retry every 5xx and 429 on their own; they are told where that is useless. */
export const errorHeaders = (error: RouterError): Record<string, string> => {
  const seconds = retryAfter(error)
  const { requestId } = error.details
  return {
    'content-type': 'application/json; charset=utf-8',
    ...(seconds !== undefined && { 'retry-after': String(seconds) }),
    ...(!table[error.code].retry && { 'x-should-retry': 'false' }),
    ...(requestId !== undefined && { 'x-request-id': requestId }),
  }
}

/** A whole error answer: `Retry-After`, `x-should-retry` and `X-Request-Id` included. */
export const errorResponse = (dialect: DialectName, error: RouterError): Response =>
  new Response(JSON.stringify(errorBody(dialect, error)), {
    status: errorStatus(error),
    headers: errorHeaders(error),
  })

/** An error of this router's own API. */
export const nativeRefusal = (error: RouterError): Response => errorResponse('native', error)
