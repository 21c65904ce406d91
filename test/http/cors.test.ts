import { expect, test } from 'bun:test'
import { host } from './harness'

const preflight = (path: string, origin: string, headers: Record<string, string> = {}) =>
  new Request(`http://localhost${path}`, {
    method: 'OPTIONS',
    headers: { host: 'nas:11435', origin, 'access-control-request-method': 'POST', ...headers },
  })

const requested = 'x-api-key, anthropic-version, anthropic-beta, content-type, x-stainless-os'

test.each(['/v1/chat/completions', '/api/chat', '/v1/messages'])(
  'BL-A03: a preflight of %s needs no key and echoes the headers',
  async (path) => {
    const { server } = host({ auth: { mode: 'keys', keys: [{ name: 'k', sha256: 'ab', scopes: ['inference'] }] } })

    const response = await server.handle(
      preflight(path, 'http://localhost:3000', { 'access-control-request-headers': requested }),
    )

    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
    expect(response.headers.get('access-control-allow-headers')).toBe(requested)
    expect(response.headers.has('access-control-allow-credentials')).toBe(false)
    expect(response.headers.get('vary')).toContain('Origin')
  },
)

test.each(['https://evil.example', 'null', 'http://nas.evil.example'])(
  'BL-A03: a preflight from %s gets no permission',
  async (origin) => {
    const response = await host().server.handle(
      preflight('/api/chat', origin, { 'access-control-request-headers': 'x-api-key' }),
    )

    expect(response.headers.has('access-control-allow-origin')).toBe(false)
    expect(response.headers.has('access-control-allow-headers')).toBe(false)
  },
)

test('a page on the same host may read answers and our headers, whatever its port', async () => {
  const { get } = host()

  const same = await get('/v1/models', { host: 'nas:11435', origin: 'http://nas:3000' })
  const other = await get('/v1/models', { host: 'nas:11435', origin: 'http://pi:3000' })

  expect(same.headers.get('access-control-allow-origin')).toBe('http://nas:3000')
  expect(same.headers.get('access-control-expose-headers')).toContain('x-request-id')
  expect(other.headers.has('access-control-allow-origin')).toBe(false)
})

test('an OPTIONS request outside browsers tells the methods', async () => {
  const response = await host().server.handle(new Request('http://localhost/v1/models', { method: 'OPTIONS' }))

  expect(response.status).toBe(204)
  expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
})
