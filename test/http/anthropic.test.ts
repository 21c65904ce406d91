import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../src/domain/errors'
import { RouterError } from '../../src/domain/errors'
import { dialects } from '../../src/wire'
import { host, json, modelView } from './harness'

const message = { model: 'qwen:7b', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] }
const version = { 'anthropic-version': '2023-06-01' }

test.each(['/v1/messages', '/v1/messages/', '/v1/messages?beta=true', '/v1/v1/messages'])(
  '%s takes a message',
  async (path) => {
    const { post, jobs } = host({ dialects, submit: async () => json({ ok: true }) })

    const response = await post(path, message, version)

    expect(response.status).toBe(200)
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
    expect(jobs.map(({ operation }) => operation)).toEqual(['anthropic.messages'])
  },
)

test('BL-P06 neither a flag nor a member that nobody knows is refused', async () => {
  const { post } = host({ dialects })

  const response = await post(
    '/v1/messages?beta=true',
    { ...message, context_management: { edits: [{ type: 'made_up_2027' }] }, made_up: {} },
    { ...version, 'anthropic-beta': 'made-up-2027-01-01,other-2026-02-02' },
  )

  expect(response.status).toBe(200)
})

describe('an error at /v1/messages', () => {
  test.each([
    ['model_not_found', 404, 'not_found_error', null, 'false'],
    ['context_too_large', 400, 'invalid_request_error', null, 'false'],
    ['queue_full', 429, 'rate_limit_error', '1', null],
    ['no_capacity', 529, 'overloaded_error', '5', null],
    ['draining', 529, 'overloaded_error', '5', null],
    ['upstream_failed', 502, 'api_error', null, null],
    ['upstream_timeout', 504, 'timeout_error', null, null],
    ['internal', 500, 'api_error', null, null],
  ] as const satisfies readonly (readonly [ErrorCode, number, string, string | null, string | null])[])(
    '%s is %p %s, with Retry-After %p and x-should-retry %p',
    async (code, status, type, retryAfter, shouldRetry) => {
      const { post } = host({ dialects, submit: () => Promise.reject(new RouterError(code, 'Why.')) })

      const response = await post('/v1/messages', message, version)

      expect(response.status).toBe(status)
      expect(response.headers.get('retry-after')).toBe(retryAfter)
      expect(response.headers.get('x-should-retry')).toBe(shouldRetry)
      const id = response.headers.get('request-id') ?? ''
      expect(await response.json()).toMatchObject({ type: 'error', error: { type }, request_id: id, fleet: { code } })
    },
  )

  test('is in this shape on every path below, and when the method is wrong', async () => {
    const { get, post } = host({ dialects })

    for (const response of [await post('/v1/messages/batches', message), await get('/v1/messages')])
      expect(await response.json()).toMatchObject({ type: 'error' })
  })

  const auth = {
    mode: 'keys' as const,
    keys: [
      {
        name: 'k',
        sha256: new Bun.CryptoHasher('sha256').update('secret').digest('hex'),
        scopes: ['inference' as const],
      },
    ],
  }

  test('without a key is an authentication error; the key comes in either header', async () => {
    const { post } = host({ dialects, auth })

    const refused = await post('/v1/messages', message)
    expect(refused.status).toBe(401)
    expect(await refused.json()).toMatchObject({ error: { type: 'authentication_error' } })
    expect((await post('/v1/messages', message, { 'x-api-key': 'secret' })).status).toBe(200)
    expect((await post('/v1/messages', message, { authorization: 'Bearer secret' })).status).toBe(200)
  })

  test('of the model list has the shape that its client reads', async () => {
    const { get } = host({ dialects, auth })

    expect(await (await get('/v1/models', version)).json()).toMatchObject({ type: 'error' })
    expect(await (await get('/v1/models')).json()).toMatchObject({ error: { code: 'invalid_api_key' } })
  })
})

describe('counting tokens', () => {
  test('asks no node, whatever the model', async () => {
    const { post, jobs } = host({ dialects })

    const response = await post(
      '/v1/messages/count_tokens?beta=true',
      { ...message, system: 'x'.repeat(4_000) },
      version,
    )

    expect(response.status).toBe(200)
    expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeWithin(1_000, 1_010)
    expect(jobs).toEqual([])
  })

  test('goes by what the model was measured to need', async () => {
    const { post } = host({ dialects, bytesPerToken: (model) => (model === 'qwen:7b' ? 2 : undefined) })

    const response = await post('/v1/messages/count_tokens', { ...message, system: 'x'.repeat(4_000) }, version)

    expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeWithin(2_000, 2_020)
  })

  test('of a body that is none is the fault of the client', async () => {
    const response = await host({ dialects }).post('/v1/messages/count_tokens', '{"model":', version)

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
  })
})

describe('the model list', () => {
  const fleet = { models: () => ['a', 'b', 'hf.co/org/c:Q4'].map((name) => modelView(name)) }

  test('serves both protocols from one path', async () => {
    const { get } = host({ dialects, fleet })

    const openai = (await (await get('/v1/models')).json()) as object
    const anthropic = (await (await get('/v1/models?limit=2', version)).json()) as { data: object[] }

    expect(openai).not.toHaveProperty('has_more')
    expect(anthropic).toMatchObject({ object: 'list', has_more: true, first_id: 'a', last_id: 'b' })
    expect(anthropic.data[0]).toMatchObject({ id: 'a', object: 'model', type: 'model', display_name: 'a' })
  })

  test('has each model by its id', async () => {
    const { get } = host({ dialects, fleet })

    expect(await (await get('/v1/models/hf.co/org/c:Q4', { 'x-api-key': 'k' })).json()).toMatchObject({
      type: 'model',
      id: 'hf.co/org/c:Q4',
    })
    expect(await (await get('/v1/models/nobody', version)).json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error' },
    })
  })
})
