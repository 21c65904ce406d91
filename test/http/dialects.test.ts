import { expect, test } from 'bun:test'
import { RouterError } from '../../src/domain/errors'
import type { NodeDescription } from '../../src/domain/node'
import { dialects } from '../../src/wire'
import type { UpstreamRequest } from '../../src/wire/exchange'
import { host, json } from './harness'

const node: NodeDescription = {
  name: 'box',
  kind: 'openai',
  url: 'http://10.0.0.2',
  origin: 'configured',
  tags: [],
  distance: 0,
}

const message = { model: 'qwen:7b', messages: [{ role: 'user', content: 'hi' }] }

const secrets = {
  authorization: 'Bearer R-KEY',
  'x-api-key': 'R-KEY',
  cookie: 'session=R-KEY',
  'proxy-authorization': 'Basic R-KEY',
  connection: 'x-secret',
  'x-secret': 'R-KEY',
  te: 'trailers',
  upgrade: 'websocket',
}

test.each(['/v1/chat/completions', '/api/chat', '/api/generate', '/v1/messages'])(
  'BL-A01: nothing that the client proved itself with at %s goes on to a node',
  async (path) => {
    const sent: UpstreamRequest[] = []
    const { post, exchanges } = host({
      dialects,
      submit: async (job) => {
        const exchange = exchanges.get(job.id)
        for (const native of ['openai', 'ollama'] as const) {
          if (exchange) sent.push(exchange.request({ node, model: 'qwen:7b', native: [native] }))
        }
        return json({})
      },
    })

    const response = await post(path, { ...message, prompt: 'hi' }, secrets)

    expect(response.status).toBe(200)
    expect(sent).toHaveLength(2)
    for (const { headers } of sent) {
      expect(JSON.stringify(headers)).not.toContain('R-KEY')
      for (const name of Object.keys(secrets)) expect(Object.keys(headers)).not.toContain(name)
    }
  },
)

test.each([
  ['/v1/chat/completions', { error: { type: 'rate_limit_error' }, fleet: { code: 'queue_full', request_id: 'req_1' } }],
  [
    '/v1/messages',
    { type: 'error', error: { type: 'rate_limit_error' }, fleet: { code: 'queue_full', request_id: 'req_1' } },
  ],
  ['/api/chat', { error: 'full', fleet: { code: 'queue_full', request_id: 'req_1' } }],
])('a refusal at %s has the shape of its dialect and says when to come back', async (path, shape) => {
  const { post } = host({
    dialects,
    submit: () => Promise.reject(new RouterError('queue_full', 'full', { retryAfterSeconds: 7 })),
  })

  const response = await post(path, message)

  expect(response.status).toBe(429)
  expect(response.headers.get('retry-after')).toBe('7')
  expect(await response.json()).toMatchObject(shape)
})

test.each(['/v1/chat/completions', '/api/chat', '/api/generate', '/v1/messages'])(
  'a body at %s that is not JSON is the fault of the client',
  async (path) => {
    const { post, jobs, warnings } = host({ dialects })

    const response = await post(path, '{"model": "qwen",')

    expect(response.status).toBe(400)
    expect([jobs, warnings]).toEqual([[], []])
  },
)
