import { expect, test } from 'bun:test'
import { host } from './harness'

test.each([
  ['/v1/chat/completion', 'Did you mean /v1/chat/completions?'],
  ['/chat/completions', 'Did you mean /v1/chat/completions?'],
  ['/models', 'Did you mean /v1/models?'],
  ['/openai/v1/chat/completions', 'Did you mean /v1/chat/completions?'],
  ['/api/tgas', 'Did you mean /api/tags?'],
  ['/v1/responses', 'Models are run by POST /v1/chat/completions'],
])('an unknown path %s is 404 with the nearest one, or with those that run models', async (path, hint) => {
  const response = await host().get(path)

  expect(response.status).toBe(404)
  expect(await response.text()).toContain(hint)
})

test('a path that only moves models about or fetches what was made is not told as one that runs them', async () => {
  const text = await (await host().get('/v1/responses')).text()

  for (const path of ['/api/chat', '/api/v1/jobs', '/v1/videos']) expect(text).toContain(path)
  for (const path of ['/api/pull', '/api/delete', '/:id', '/*']) expect(text).not.toContain(path)
})

test('an unknown path of our own API answers in its shape', async () => {
  const response = await host().get('/api/v1/nothing')

  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ fleet: { code: 'not_found', request_id: 'req_1' } })
})

test.each(['GET', 'PUT', 'DELETE', 'HEAD'])('%s on an inference path is 405 and names POST', async (method) => {
  const { server, jobs } = host()

  const response = await server.handle(new Request('http://localhost/v1/chat/completions', { method }))

  expect(response.status).toBe(405)
  expect(response.headers.get('allow')).toBe('POST, OPTIONS')
  expect(jobs).toEqual([])
})

test('a wrong method on a path with an id is 405 too', async () => {
  const response = await host().post('/v1/models/qwen%3A7b')

  expect(response.status).toBe(405)
  expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
})

test('a very long path is not compared with anything', async () => {
  const response = await host().get(`/${'a'.repeat(7_000)}`)

  expect(response.status).toBe(404)
  expect((await response.text()).length).toBeLessThan(1_000)
})

test('short host names are served', async () => {
  const { server } = host()

  expect((await server.handle(new Request('http://llm/v1/models'))).status).toBe(200)
  expect((await server.handle(new Request('http://x/healthz'))).status).toBe(200)
})

test.each([
  '/',
  '/v1/models',
  '/v1/v1/models',
  '/v1/models/qwen:7b',
  '/api/tags',
  '/api/version',
  '/healthz',
  '/api/v1/nodes/box',
])('HEAD %s is answered like GET', async (path) => {
  const { server } = host()

  const response = await server.handle(new Request(`http://localhost${path}`, { method: 'HEAD' }))

  expect(response.status).toBe(200)
  expect(response.headers.get('x-fleet-instance')).toBe('inst-1')
})
