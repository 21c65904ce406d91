import { describe, expect, test } from 'bun:test'
import { hashKey } from '../../src/config/hash-key'
import type { KeyConfig } from '../../src/domain/config'
import { listKeys } from '../../src/cli/keys-list'
import { createUsage } from '../../src/observe/usage'
import { fastModel, type FakeSpec, type Json, slowModel } from '../support/fakes'
import { type Bench, type Setup, withRouter } from '../support/router'

const key = (name: string, more: Partial<KeyConfig> = {}): KeyConfig => ({
  name,
  sha256: hashKey(`fleet_${name}`),
  scopes: ['inference'],
  ...more,
})
const as = (name: string) => ({ authorization: `Bearer fleet_${name}` })

const keyed = (keys: readonly KeyConfig[], more: Setup = {}): Setup => ({ ...more, auth: { mode: 'keys', keys } })
const admin = key('admin', { scopes: ['admin', 'metrics', 'inference'] })

const node: FakeSpec = { kind: 'openai', models: [fastModel('small'), fastModel('big:120b')] }

const get = async ({ url }: Bench, path: string, name: string): Promise<{ status: number; json: Json }> => {
  const answer = await fetch(`${url}${path}`, { headers: as(name) })
  const isJson = answer.headers.get('content-type')?.includes('json')
  return { status: answer.status, json: isJson ? await answer.json() : await answer.text() }
}

describe('models of a key', () => {
  const few = key('few', { models: ['*', '!*:120b'] })

  test('what is excluded is 403 in the shape of the client s protocol, and what is not runs', async () => {
    await withRouter([node], keyed([few]), async (bench) => {
      const headers = as('few')
      const openai = await bench.chat({ model: 'big:120b', headers })
      const ollama = await bench.ollama({ model: 'big:120b', headers })
      const anthropic = await fetch(`${bench.url}/v1/messages`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ model: 'big:120b', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }),
      })
      const allowed = await bench.chat({ model: 'small', headers, stream: false })

      expect([openai.status, ollama.status, anthropic.status, allowed.status]).toEqual([403, 403, 403, 200])
      expect(await openai.json()).toMatchObject({ error: { param: 'model' }, fleet: { code: 'forbidden' } })
      expect(await ollama.json()).toMatchObject({ error: expect.any(String), fleet: { code: 'forbidden' } })
      expect(await anthropic.json()).toMatchObject({ error: { type: 'permission_error' } })
      expect(bench.of('request.settled').filter(({ outcome }) => outcome.status === 403)).toHaveLength(3)
      await bench.idle()
    })
  })

  test('the lists show no others', async () => {
    await withRouter([node], keyed([few, admin]), async (bench) => {
      const names = async (name: string) => ({
        openai: (await get(bench, '/v1/models', name)).json.data.map(({ id }: { id: string }) => id),
        ollama: (await get(bench, '/api/tags', name)).json.models.map((model: { name: string }) => model.name),
      })

      expect(await names('few')).toEqual({ openai: ['small'], ollama: [expect.stringMatching(/^small/)] })
      expect((await names('admin')).openai).toEqual(['big:120b', 'small'])
      expect((await get(bench, '/v1/models/big:120b', 'few')).status).toBe(404)
      expect((await get(bench, '/v1/models/small', 'few')).status).toBe(200)
    })
  })
})

test('a limit answers 429 with Retry-After, and the next minute has room again', async () => {
  const keys = [key('k', { limits: { requestsPerMinute: 1 } })]
  await withRouter([{ kind: 'openai' }], keyed(keys), async ({ chat, idle }) => {
    const first = await chat({ headers: as('k'), stream: false })
    const second = await chat({ headers: as('k') })

    expect([first.status, second.status]).toEqual([200, 429])
    const seconds = Number(second.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(55)
    expect(seconds).toBeLessThanOrEqual(60)
    expect(await second.json()).toMatchObject({ error: { type: 'rate_limit_error' } })
    await idle()
  })
})

test('requests at once are counted off when a client hangs up', async () => {
  const keys = [key('k', { limits: { concurrent: 1 } })]
  await withRouter([{ kind: 'openai', models: [slowModel()] }], keyed(keys), async ({ chat, router, idle }) => {
    const client = new AbortController()
    const first = await chat({ headers: as('k'), signal: client.signal })
    const refused = await chat({ headers: as('k') })
    client.abort()
    await first.text().catch(() => '')
    await idle()

    expect(refused.status).toBe(429)
    expect(router.fleet.running('k')).toBe(0)
    expect((await chat({ headers: as('k'), stream: false })).status).toBe(200)
  })
})

test('a key caps the priority, gives its policy, and a header may name another', async () => {
  const keys = [key('low', { priority: 'batch', policy: 'warmth' }), key('any')]
  await withRouter([{ kind: 'openai' }], keyed(keys), async ({ chat, of, idle }) => {
    const ask = async (name: string, headers: Record<string, string> = {}) =>
      (await chat({ headers: { ...as(name), ...headers }, stream: false })).status

    expect(await ask('low', { 'X-Fleet-Priority': 'critical' })).toBe(200)
    expect(await ask('any', { 'X-Fleet-Priority': 'critical' })).toBe(200)
    expect(await ask('low', { 'X-Fleet-Policy': 'steady' })).toBe(200)
    expect(await ask('any', { 'X-Fleet-Policy': 'nearest' })).toBe(400)
    await idle()

    expect(of('request.settled').map(({ priority }) => priority)).toEqual(['batch', 'critical', 'batch'])
    expect(of('request.placed').map(({ policy }) => policy)).toEqual(['warmth', 'residency', 'steady'])
  })
})

describe('usage of a key', () => {
  test('is listed for admins, by the API and by the command, never with the key or its hash', async () => {
    await withRouter([{ kind: 'openai', answerTokens: 5 }], keyed([key('k'), admin]), async (bench) => {
      await (await bench.chat({ headers: as('k') })).text()
      await (await bench.chat({ headers: as('k'), stream: false })).text()
      await bench.idle()

      const listed = await get(bench, '/api/v1/keys', 'admin')
      const own = await get(bench, '/api/v1/keys', 'k')

      const [first, second] = listed.json.keys
      expect(first).toMatchObject({
        name: 'k',
        scopes: ['inference'],
        running: 0,
        usage: [
          { requests: 2, tokensOut: 10, tokensIn: expect.any(Number), day: new Date().toISOString().slice(0, 10) },
        ],
      })
      expect(first.usage[0].engineSeconds).toBeGreaterThan(0)
      expect(second).toMatchObject({ name: 'admin', usage: [] })
      expect(JSON.stringify(listed.json)).not.toContain(hashKey('fleet_k'))
      expect(own.status).toBe(403)

      const said: string[] = []
      const io = { env: {}, fetch, out: (text: string) => said.push(text), err: () => {}, columns: 80, isTty: false }
      const code = await listKeys(
        { positionals: ['list'], options: { url: bench.url, key: 'fleet_admin' } },
        io as never,
      )
      expect(code).toBe(0)
      expect(said.join('')).toMatch(/^KEY .*\nk +- +0 +2 +\d+ +10 +\d+ s +all\n/)
    })
  })

  test('goes on from the store, and only a keyed request is counted', () => {
    const saved: unknown[] = []
    const at = Date.UTC(2026, 0, 31, 23, 59)
    const before = { key: 'k', day: '2026-01-31', requests: 1, tokensIn: 1, tokensOut: 1, engineSeconds: 1 }
    const usage = createUsage({ load: () => [before], save: (row) => saved.push(row) })
    const settled = (more: object, when = at) =>
      usage.hear({
        type: 'request.settled',
        at: when,
        request: 'r',
        dialect: 'openai',
        asked: 'm',
        priority: 'normal',
        arrivedAt: at,
        outcome: {
          end: 'completed',
          status: 200,
          phase: 'generating',
          bytes: 1,
          retries: 0,
          tokensIn: 2,
          tokensOut: 3,
          engineMs: 500,
        },
        ...more,
      })

    settled({ key: 'k' })
    settled({})
    settled({ key: 'k' }, at + 60_000)

    expect(usage.of('k')).toEqual([
      { key: 'k', day: '2026-02-01', requests: 1, tokensIn: 2, tokensOut: 3, engineSeconds: 0.5 },
      { key: 'k', day: '2026-01-31', requests: 2, tokensIn: 3, tokensOut: 4, engineSeconds: 1.5 },
    ])
    expect(saved).toHaveLength(2)
    expect(usage.of('nobody')).toEqual([])
  })

  test.each([true, false])('metrics by key: %p', async (perKey) => {
    const metrics = { enabled: true, maxModels: 200, perKey }
    await withRouter([{ kind: 'openai', answerTokens: 5 }], keyed([key('k'), admin], { metrics }), async (bench) => {
      await (await bench.chat({ headers: as('k') })).text()
      await bench.idle()
      const page: string = (await get(bench, '/metrics', 'admin')).json

      expect(page.includes('fleet_key_')).toBe(perKey)
      if (!perKey) return
      expect(page).toContain('fleet_key_requests_total{key="k",outcome="completed"} 1\n')
      expect(page).toContain('fleet_key_tokens_total{key="k",direction="output"} 5\n')
      expect(page).toMatch(/fleet_key_engine_seconds_total\{key="k"\} 0\.\d+/)
    })
  })
})
