/** The error table: what each code is in each dialect. */
import type { ErrorCode, RouterError } from '../domain/errors'
import { statusOf } from '../domain/errors'
import type { DialectName } from '../domain/job'
import type { Json } from './json/values'
import { compact } from './json/values'

interface Row {
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
  invalid_request: { type: invalid, code: null, retry: false },
  not_supported: { type: invalid, code: 'not_supported', retry: false },
  context_too_large: { type: invalid, code: 'context_length_exceeded', retry: false },
  unauthorized: { type: invalid, code: 'invalid_api_key', retry: false },
  forbidden: { type: invalid, code: 'forbidden', retry: false },
  not_found: { type: invalid, code: 'unknown_url', retry: false },
  model_not_found: { type: invalid, code: 'model_not_found', retry: false },
  response_not_found: { type: invalid, code: 'previous_response_not_found', retry: false },
  method_not_allowed: { type: invalid, code: 'method_not_allowed', retry: false },
  request_too_large: { type: invalid, code: 'request_too_large', retry: false },
  queue_full: { type: 'rate_limit_error', code: 'rate_limit_exceeded', retry: true, retryAfterSeconds: 1 },
  client_disconnected: { type: invalid, code: 'client_disconnected', retry: false },
  internal: { type: server, code: 'internal_error', retry: true },
  upstream_rejected: { type: invalid, code: null, retry: false },
  upstream_failed: { type: server, code: 'upstream_failed', retry: true },
  no_capacity: { type: server, code: 'no_capacity', retry: true, retryAfterSeconds: 5 },
  draining: { type: server, code: 'draining', retry: true, retryAfterSeconds: 5 },
  upstream_timeout: { type: server, code: 'upstream_timeout', retry: true },
  deadline_exceeded: { type: server, code: 'deadline_exceeded', retry: false },
  loop_detected: { type: server, code: 'loop_detected', retry: false },
}

/** Of a rejection whose own status is none of the client's. */
const badGateway = 502

const isClientError = (status: number | undefined): status is number =>
  status !== undefined && status >= 400 && status <= 499

/** The HTTP status of an error in a dialect; a node's own 4xx keeps its status. */
export const errorStatus = ({ code, details }: RouterError, dialect?: DialectName): number => {
  if (code !== 'upstream_rejected') return statusOf(code, dialect)
  return isClientError(details.status) ? details.status : badGateway
}

/** The member that every error of ours carries beside the dialect's own. */
export const fleetMember = ({ code, message, details }: RouterError): Json =>
  compact({
    code,
    request_id: details.requestId,
    message,
    nodes: details.nodes ?? [],
    hint: details.hint,
  })

/** Clients recognise a prompt that is too long by these words more often than by the code, and shorten it. */
const openaiMessage = ({ code, message, details }: RouterError): string => {
  const { need, have } = details.tokens ?? {}
  if (code !== 'context_too_large' || need === undefined || have === undefined) return message
  if (message.includes('maximum context length')) return message
  return `This model's maximum context length is ${have} tokens, this request needs ${need}. ${message}`
}

const openaiError = (error: RouterError): Json => {
  const { code, details } = error
  return {
    message: openaiMessage(error),
    type: details.upstream?.type ?? table[code].type,
    param: details.param ?? null,
    code: details.upstream?.code ?? table[code].code,
  }
}

const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

const anthropicType = (status: number): string =>
  anthropicTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')

/** Here they know it by other words. */
const anthropicMessage = ({ code, message, details }: RouterError): string => {
  if (code !== 'context_too_large') return message
  const { need, have } = details.tokens ?? {}
  const sizes = need === undefined || have === undefined ? '' : `: ${need} tokens > ${have} maximum`
  return `prompt is too long${sizes}. ${message}`
}

const anthropicBody = (error: RouterError): Json =>
  compact({
    type: 'error',
    error: { type: anthropicType(errorStatus(error, 'anthropic')), message: anthropicMessage(error) },
    request_id: error.details.requestId,
  })

/** The dialect's own members of an error's body. */
const shapes: Readonly<Record<DialectName, (error: RouterError) => Json>> = {
  openai: (error) => ({ error: openaiError(error) }),
  ollama: ({ message }) => ({ error: message }),
  anthropic: anthropicBody,
  native: ({ code, message, details }) => ({ error: compact({ code, message, param: details.param }) }),
}

/** The body of an error in the client's dialect, as plain data. */
export const errorBody = (dialect: DialectName, error: RouterError): Json => ({
  ...shapes[dialect](error),
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
    status: errorStatus(error, dialect),
    headers: errorHeaders(error),
  })
