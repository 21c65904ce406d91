import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Scope } from '../../src/domain/config'
import { host } from './harness'

const key = (name: string, ...scopes: Scope[]) => ({
  name,
  sha256: createHash('sha256').update(`secret-${name}`).digest('hex'),
  scopes,
})

const auth = {
  mode: 'keys',
  keys: [
    key('app', 'inference'),
    key('prom', 'metrics'),
    key('boss', 'admin'),
    key('all', 'inference', 'metrics', 'admin'),
  ],
} as const

const metrics = { expose: async () => 'fleet_up 1\n', contentType: 'text/plain; version=0.0.4' }

const bearer = (name: string) => ({ authorization: `Bearer secret-${name}` })

test.each([
  ['Authorization: Bearer', bearer('app')],
  ['a lower-case scheme', { authorization: 'bearer secret-app' }],
  ['x-api-key', { 'x-api-key': 'secret-app' }],
  ['x-api-key beside a placeholder bearer', { authorization: 'Bearer none', 'x-api-key': 'secret-app' }],
])('a key is taken from %s, and its name goes into the job', async (_, headers) => {
  const { chat, jobs } = host({ auth })

  const response = await chat(headers)

  expect(response.status).toBe(200)
  expect(jobs[0]?.key).toBe('app')
})

test.each([
  ['no key', {}],
  ['a wrong key', { authorization: 'Bearer secret-nobody' }],
  ['a key under another scheme', { authorization: 'Basic secret-app' }],
  ['the hash instead of the key', { authorization: `Bearer ${auth.keys[0].sha256}` }],
])('%s is refused with 401 in the dialect of the client, and not logged', async (_, headers) => {
  const { post, jobs, warnings } = host({ auth })

  const response = await post('/api/chat', { model: 'qwen' }, headers)

  expect(response.status).toBe(401)
  expect(await response.json()).toMatchObject({ shape: 'ollama', code: 'unauthorized' })
  expect(jobs).toEqual([])
  expect(warnings).toEqual([])
})

test.each([
  ['/v1/models', ['app', 'all']],
  ['/api/tags', ['app', 'all']],
  ['/metrics', ['prom', 'all']],
  ['/api/v1/overview', ['prom', 'boss', 'all']],
  ['/api/v1/requests', ['prom', 'boss', 'all']],
])('GET %s is open to the keys %p only', async (path, allowed) => {
  const { get } = host({ auth, metrics })

  for (const { name } of auth.keys) {
    const { status } = await get(path, bearer(name))
    expect([name, status]).toEqual([name, allowed.includes(name) ? 200 : 403])
  }
  expect((await get(path)).status).toBe(401)
})

test('verbs need the scope admin', async () => {
  const { post, admissions } = host({ auth })

  const refused = await post('/api/v1/nodes/box/pause', '', bearer('prom'))
  const done = await post('/api/v1/nodes/box/pause', '', bearer('boss'))

  expect(refused.status).toBe(403)
  expect(done.status).toBe(200)
  expect(admissions).toEqual([['box', 'paused']])
})

test.each(['/healthz', '/readyz', '/', '/api/version'])('%s needs no key', async (path) => {
  expect((await host({ auth }).get(path)).status).toBe(200)
})

test.each(['localhost:11435', '127.0.0.1:11435', '[::1]:11435', '192.168.1.9', 'fleet.localhost', 'router.lan:11435'])(
  'in open mode a verb may come under the host name %s',
  async (hostHeader) => {
    const response = await host({ host: 'router.lan' }).post('/api/v1/nodes/box/drain', '', { host: hostHeader })

    expect(response.status).toBe(200)
  },
)

test.each(['evil.example', 'evil.example:11435', 'localhost.evil.example', '127.0.0.1.evil.example'])(
  'in open mode a verb under the host name %s is refused, as a rebound name would look like this',
  async (hostHeader) => {
    const { post, admissions } = host()

    const response = await post('/api/v1/nodes/box/drain', '', { host: hostHeader })

    expect(response.status).toBe(403)
    expect(admissions).toEqual([])
  },
)

test.each(['https://evil.example', 'null', 'http://127.0.0.1.evil.example'])(
  'in open mode a page of %s can neither run a model nor change anything',
  async (origin) => {
    const { chat, post, jobs, admissions } = host()

    const inference = await chat({ origin, 'content-type': 'text/plain' })
    const verb = await post('/api/v1/nodes/box/drain', '', { origin })

    expect([inference.status, verb.status]).toEqual([403, 403])
    expect(jobs).toEqual([])
    expect(admissions).toEqual([])
  },
)

test.each(['http://localhost:3000', 'http://127.0.0.1:8080', 'app://obsidian.md', 'chrome-extension://abcdef'])(
  'in open mode %s may run a model',
  async (origin) => {
    expect((await host().chat({ origin })).status).toBe(200)
  },
)
