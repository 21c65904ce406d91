import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../../src/domain/errors'
import { RouterError } from '../../../src/domain/errors'
import { dialectFor, dialects } from '../../../src/wire'
import { errorBody, errorResponse, errorStatus } from '../../../src/wire/errors'

const rows: readonly (readonly [ErrorCode, number, string, string | null])[] = [
  ['invalid_request', 400, 'invalid_request_error', null],
  ['not_supported', 400, 'invalid_request_error', 'not_supported'],
  ['context_too_large', 400, 'invalid_request_error', 'context_length_exceeded'],
  ['unauthorized', 401, 'invalid_request_error', 'invalid_api_key'],
  ['forbidden', 403, 'invalid_request_error', 'forbidden'],
  ['not_found', 404, 'invalid_request_error', 'unknown_url'],
  ['model_not_found', 404, 'invalid_request_error', 'model_not_found'],
  ['method_not_allowed', 405, 'invalid_request_error', 'method_not_allowed'],
  ['request_too_large', 413, 'invalid_request_error', 'request_too_large'],
  ['queue_full', 429, 'rate_limit_error', 'rate_limit_exceeded'],
  ['client_disconnected', 499, 'invalid_request_error', 'client_disconnected'],
  ['internal', 500, 'server_error', 'internal_error'],
  ['upstream_rejected', 502, 'invalid_request_error', null],
  ['upstream_failed', 502, 'server_error', 'upstream_failed'],
  ['no_capacity', 503, 'server_error', 'no_capacity'],
  ['draining', 503, 'server_error', 'draining'],
  ['upstream_timeout', 504, 'server_error', 'upstream_timeout'],
  ['deadline_exceeded', 504, 'server_error', 'deadline_exceeded'],
  ['loop_detected', 508, 'server_error', 'loop_detected'],
]

describe.each(rows)('%s', (code, status, type, openaiCode) => {
  const error = new RouterError(code, 'Why it failed.', {
    requestId: 'req_1',
    hint: 'Do this.',
    nodes: [{ node: 'box', reason: 'memory', need: 40, have: 24, unit: 'GB' }],
  })
  const fleet = {
    code,
    request_id: 'req_1',
    message: 'Why it failed.',
    hint: 'Do this.',
    nodes: [...(error.details.nodes ?? [])],
  }

  test(`is ${status} in OpenAI's and Ollama's dialect`, () => {
    expect(errorStatus(error)).toBe(status)
    expect(errorBody('openai', error)).toEqual({
      error: { message: 'Why it failed.', type, param: null, code: openaiCode },
      fleet,
    })
    expect(errorBody('ollama', error)).toEqual({ error: 'Why it failed.', fleet })
    expect(errorBody('native', error)).toEqual({ error: { code, message: 'Why it failed.' }, fleet })
  })

  test('names the request in a header', async () => {
    for (const { name, refuse } of dialects) {
      const response = refuse(error)
      expect(response.status).toBe(errorStatus(error, name))
      expect(response.headers.get('x-request-id')).toBe('req_1')
      expect(response.headers.get('content-type')).toContain('application/json')
      expect(await response.json()).toMatchObject({ fleet: { code } })
    }
  })
})

describe('headers', () => {
  const headers = (code: ErrorCode, retryAfterSeconds?: number): Headers =>
    errorResponse('openai', new RouterError(code, 'x', retryAfterSeconds === undefined ? {} : { retryAfterSeconds }))
      .headers

  test.each([
    ['queue_full', 2.1, '3'],
    ['queue_full', 0, '1'],
    ['queue_full', undefined, '1'],
    ['no_capacity', undefined, '5'],
    ['draining', 30, '30'],
    ['invalid_request', undefined, null],
  ] as const)('%s that clears in %s s says Retry-After %s', (code, seconds, expected) => {
    expect(headers(code, seconds).get('retry-after')).toBe(expected)
  })

  test.each([
    ['invalid_request', 'false'],
    ['model_not_found', 'false'],
    ['deadline_exceeded', 'false'],
    ['queue_full', null],
    ['upstream_failed', null],
    ['no_capacity', null],
  ] as const)('%s says x-should-retry %s', (code, expected) => {
    expect(headers(code).get('x-should-retry')).toBe(expected)
  })
})

test("a node's own 4xx keeps its status, type and code", () => {
  const error = new RouterError('upstream_rejected', 'no', { status: 422, upstream: { type: 'odd', code: 7 } })

  expect(errorStatus(error)).toBe(422)
  expect(errorBody('openai', error).error).toEqual({ message: 'no', type: 'odd', param: null, code: 7 })
})

test.each([
  ['/api/nothing', 'ollama'],
  ['/', 'ollama'],
  ['/v1/nothing', 'openai'],
  ['/apiary', 'openai'],
  ['/v1/messages', 'anthropic'],
  ['/v1/v1/messages/batches', 'anthropic'],
  ['/v1/messagesque', 'openai'],
] as const)('an error on %s takes the shape of %s', (path, name) => {
  expect(dialectFor(path).name).toBe(name)
})
