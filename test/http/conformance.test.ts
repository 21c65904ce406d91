import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CODES, type ErrorRow, errorRows, type ReachingCode } from '../../scripts/protocols'
import { RouterError } from '../../src/domain/errors'
import type { DialectName, Job } from '../../src/domain/job'
import type { NodeDescription } from '../../src/domain/node'
import type { Reply } from '../../src/ports/node-gateway'
import { dialects } from '../../src/wire'
import type { Exchange } from '../../src/wire/exchange'
import type { Json } from '../support/fakes'
import { isErrorRecord, recordsOf } from '../support/protocol-answers'
import { type Protocol, protocols } from '../support/protocols'
import { bytes, host } from './harness'

/** Status, that for Anthropic's clients, OpenAI's type and code, Anthropic's type, Retry-After, x-should-retry. */
type Cells = readonly [number, number, string, string | null, string, string | null, string | null]

const invalid = 'invalid_request_error'

const EXPECTED: Readonly<Record<ReachingCode, Cells>> = {
  invalid_request: [400, 400, invalid, null, invalid, null, 'false'],
  not_supported: [400, 400, invalid, 'not_supported', invalid, null, 'false'],
  context_too_large: [400, 400, invalid, 'context_length_exceeded', invalid, null, 'false'],
  unauthorized: [401, 401, invalid, 'invalid_api_key', 'authentication_error', null, 'false'],
  forbidden: [403, 403, invalid, 'forbidden', 'permission_error', null, 'false'],
  not_found: [404, 404, invalid, 'unknown_url', 'not_found_error', null, 'false'],
  method_not_allowed: [405, 405, invalid, 'method_not_allowed', invalid, null, 'false'],
  model_not_found: [404, 404, invalid, 'model_not_found', 'not_found_error', null, 'false'],
  response_not_found: [404, 404, invalid, 'previous_response_not_found', 'not_found_error', null, 'false'],
  request_too_large: [413, 413, invalid, 'request_too_large', 'request_too_large', null, 'false'],
  queue_full: [429, 429, 'rate_limit_error', 'rate_limit_exceeded', 'rate_limit_error', '1', null],
  upstream_rejected: [502, 502, invalid, null, 'api_error', null, 'false'],
  upstream_failed: [502, 502, 'server_error', 'upstream_failed', 'api_error', null, null],
  upstream_timeout: [504, 504, 'server_error', 'upstream_timeout', 'timeout_error', null, null],
  no_capacity: [503, 529, 'server_error', 'no_capacity', 'overloaded_error', '5', null],
  deadline_exceeded: [504, 504, 'server_error', 'deadline_exceeded', 'timeout_error', null, 'false'],
  draining: [503, 529, 'server_error', 'draining', 'overloaded_error', '5', null],
  loop_detected: [508, 508, 'server_error', 'loop_detected', 'api_error', null, 'false'],
  internal: [500, 500, 'server_error', 'internal_error', 'api_error', null, null],
}

const expectedOf = (code: ReachingCode): ErrorRow => {
  const [status, anthropicStatus, type, openaiCode, anthropicType, retryAfter, shouldRetry] = EXPECTED[code]
  return { code, status, anthropicStatus, type, openaiCode, anthropicType, retryAfter, shouldRetry }
}

const MESSAGE = 'Why it failed.'
const details = { hint: 'Do this.', nodes: [{ node: 'box', reason: 'memory', need: 40, have: 24, unit: 'GB' }] }

/** The dialect's own members of the error's body. */
const ownMembers = (dialect: DialectName, { code, type, openaiCode, anthropicType }: ErrorRow, id: string): Json => {
  const words = code === 'context_too_large' ? `prompt is too long. ${MESSAGE}` : MESSAGE
  const forms: Readonly<Record<DialectName, Json>> = {
    openai: { error: { message: MESSAGE, type, param: null, code: openaiCode } },
    ollama: { error: MESSAGE },
    anthropic: { type: 'error', error: { type: anthropicType, message: words }, request_id: id },
    native: { error: { code, message: MESSAGE } },
  }
  return forms[dialect]
}

const fleetOf = (code: ReachingCode, id: string): Json => ({ code, request_id: id, message: MESSAGE, ...details })

const node: NodeDescription = {
  name: 'box',
  kind: 'openai',
  url: 'http://10.0.0.2',
  origin: 'configured',
  tags: [],
  distance: 0,
}

/** What has reached the client when the error comes: part of a record. */
const HALF = 'data: {"par'

/** An answer that breaks off within a record and ends with the error. */
const brokenOff = (exchange: Exchange, error: RouterError): Reply => {
  const request = exchange.request({ node, model: 'm', native: ['openai'] })
  const timing = { sentAt: 0, firstByteAt: 0, loadMs: 0, now: () => 0 }
  return {
    status: 200,
    headers: { 'content-type': exchange.reply(request, 'm', timing).contentType },
    body: new ReadableStream({
      start(controller) {
        controller.enqueue(bytes(HALF))
        controller.enqueue(exchange.inBandError(error))
        controller.close()
      },
    }),
  }
}

/** The client's request id says how its request is to end: the code, after `late-` behind a first byte. */
const submit = async ({ id, clientRequestId = '' }: Job): Promise<Reply> => {
  const code = clientRequestId.replace('late-', '') as ReachingCode
  const error = new RouterError(code, MESSAGE, details)
  const exchange = router.exchanges.get(id)
  if (clientRequestId === code || exchange === undefined) throw error
  return brokenOff(exchange, error)
}

const router = host({ dialects, submit, port: 0 })
let url = ''
beforeAll(async () => {
  url = (await router.server.listen()).url
})
afterAll(() => router.server.stop(true))

const ask = (path: string, body: object, id: string): Promise<Response> =>
  fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body), headers: { 'x-request-id': id } })

const ids = ({ headers }: Response): (string | null)[] =>
  ['x-request-id', 'request-id', 'x-client-request-id'].map((name) => headers.get(name))

test('the table is the one that is written down here', () => {
  expect(errorRows()).toEqual(CODES.map(expectedOf))
})

const named = protocols.map((protocol) => [protocol.name, protocol] as const)

describe.each(named)('%s', (_name, { path, dialect, bodies }) => {
  test.each(CODES)('%s is a whole error before the first byte, streamed or not', async (code) => {
    const row = expectedOf(code)
    for (const body of bodies.slice(0, 2)) {
      router.warnings.length = 0
      const answer = await ask(path, body, code)

      const [id] = ids(answer)
      expect(id).toMatch(/^req_/)
      expect(ids(answer)).toEqual([id ?? '', id ?? '', code])
      expect(answer.status).toBe(dialect === 'anthropic' ? row.anthropicStatus : row.status)
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(answer.headers.get('retry-after')).toBe(row.retryAfter)
      expect(answer.headers.get('x-should-retry')).toBe(row.shouldRetry)
      expect(await answer.json()).toEqual({ ...ownMembers(dialect, row, id ?? ''), fleet: fleetOf(code, id ?? '') })
      // What clients bring about is no news for the log.
      expect(router.warnings).toHaveLength(code === 'internal' ? 1 : 0)
    }
  })
})

const isStreamed = ({ bodies }: Protocol): boolean => bodies.some((body) => 'stream' in body)

describe.each(named.filter(([, protocol]) => isStreamed(protocol)))('%s', (_name, { path, dialect, bodies }) => {
  test.each(CODES)('%s after the first byte is the last record of the stream', async (code) => {
    const answer = await ask(path, bodies[0] as object, `late-${code}`)
    const [id] = ids(answer)
    const text = await answer.text()

    expect(answer.status).toBe(200)
    expect(text).toStartWith(`${HALF}\n`)
    const records = recordsOf(answer.headers.get('content-type') ?? '', text.slice(HALF.length))
    // Our own protocol ends with the record of the request.
    const error = records.at(dialect === 'native' ? -2 : -1)
    expect(records.filter((record) => isErrorRecord(dialect, record))).toEqual([error])
    const own = ownMembers(dialect, expectedOf(code), id ?? '')
    if (path === '/v1/responses')
      expect(error).toMatchObject({ response: { error: { message: MESSAGE } }, fleet: fleetOf(code, id ?? '') })
    else expect(error).toEqual({ ...own, fleet: fleetOf(code, id ?? '') })
    if (dialect === 'anthropic') expect(text).toContain('\n\nevent: error\ndata: {')
  })
})
