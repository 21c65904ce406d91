import { describe, expect, test } from 'bun:test'
import { hashKey } from '../../src/config/hash-key'
import { dialects } from '../../src/wire'
import { nativeJobs } from '../../src/wire/native'
import { fastModel, slowModel, until } from '../support/fakes'
import { type Bench, withRouter } from '../support/router'

const quiet = { log: { level: 'silent' } } as const
const openai = { kind: 'openai' } as const

const send = (bench: Bench, path: string, body: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${bench.url}${path}`, { method: 'POST', body, headers })

const jsonPaths = [nativeJobs, ...dialects.flatMap(({ inference }) => inference)].map(({ path }) => path)

test('bodies of brackets are refused on every path before they cost anything', () =>
  withRouter([openai], quiet, async (bench) => {
    const depth = 100_000
    const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    const hidden = `{"model":"m","messages":[{"role":"user","content":"hi"}],"input":"x","prompt":"x","x":${deep}}`
    const startedAt = performance.now()
    for (const path of jsonPaths) {
      for (const body of [deep, hidden]) {
        const response = await send(bench, path, body, { 'content-type': 'application/json' })
        expect(response.status).toBeWithin(400, 500)
        await response.body?.cancel()
      }
    }
    expect(performance.now() - startedAt).toBeLessThan(jsonPaths.length * 400)
  }))

test('a name that no model has costs nothing, however long, and forges no line', () =>
  withRouter([openai], quiet, async (bench) => {
    const startedAt = performance.now()
    for (const model of ['a'.repeat(2_000_000), 'a\nb', 'a\u001b[31m', 'a\u009b31m', 'a\u202eb', '\0']) {
      for (const response of [await bench.chat({ model }), await bench.ollama({ model })]) {
        expect(response.status).toBe(400)
        expect((await response.text()).length).toBeLessThan(1_000)
      }
    }
    const fallback = await bench.chat({ model: 'nope', headers: { 'x-fleet-fallback': 'a%0d%0aset-cookie:x' } })
    const jobs = await send(bench, '/api/v1/jobs', JSON.stringify({ models: ['m', 'a\nb'], messages: [{}] }))
    const close = await bench.chat({ model: `${'m'.repeat(1_000)}` })

    expect([fallback.status, jobs.status, close.status]).toEqual([400, 400, 404])
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  }))

test('names of members of every object are no models, nodes, records or policies', () =>
  withRouter([openai], quiet, async (bench) => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await bench.chat({ model: name })).status).toBe(404)
      expect((await bench.chat({ headers: { 'x-fleet-policy': name } })).status).toBe(400)
      expect((await bench.chat({ headers: { 'x-fleet-priority': name } })).status).toBe(400)
      for (const path of ['nodes', 'requests', 'jobs']) {
        expect((await fetch(`${bench.url}/api/v1/${path}/${name}`)).status).toBe(404)
      }
    }
    const body = '{"__proto__":{"model":"m","isAdmin":true},"model":"m","messages":[{"role":"user","content":"hi"}]}'
    expect((await send(bench, '/v1/chat/completions', body)).status).toBe(200)
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
  }))

test.each(['1e30', '-5', '0.5', '1e999'])('a window of %s tokens is refused and loads nothing', (window) =>
  withRouter([{ kind: 'ollama' }], quiet, async (bench) => {
    const body = `{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}],"options":{"num_ctx":${window}}}`
    const job = `{"model":"m","messages":[{"role":"user","content":"hi"}],"contextTokens":${window}}`

    expect((await send(bench, '/api/chat', body)).status).toBe(400)
    expect((await send(bench, '/api/v1/jobs', job)).status).toBe(400)
    expect(bench.fakes[0]?.loads).toEqual([])
  }),
)

test('a name that a key may not use is not suggested to it', () => {
  const keys = [
    { name: 'few', sha256: hashKey('fleet_few'), scopes: ['inference' as const], models: ['*', '!secret*'] },
    { name: 'all', sha256: hashKey('fleet_all'), scopes: ['inference' as const] },
  ]
  const models = [fastModel('secret-model:7b'), fastModel('public-model:7b')]
  return withRouter([{ kind: 'openai', models }], { ...quiet, auth: { mode: 'keys', keys } }, async (bench) => {
    const ask = async (model: string, key: string): Promise<string> =>
      (await bench.chat({ model, headers: { authorization: `Bearer fleet_${key}` } })).text()

    expect(await ask('ecret-model:7b', 'all')).toContain('secret-model:7b')
    expect((await ask('ecret-model:7b', 'few')).replaceAll("'ecret-model", '')).not.toContain('secret')
    expect(await ask('publc-model:7b', 'few')).toContain('public-model:7b')
  })
})

test('the farthest deadline is no deadline that has passed', () =>
  withRouter([{ kind: 'openai', slots: 1, models: [slowModel()] }], quiet, async (bench) => {
    const first = bench.chat({ stream: false })
    await until(() => bench.fakes[0]?.running() === 1)

    const second = await bench.chat({ stream: false, headers: { 'x-fleet-deadline': '31536000' } })

    expect(second.status).toBe(200)
    expect((await first).status).toBe(200)
  }))

describe('a prompt that an engine quotes in its error', () => {
  const secret = 'the vault code is 7391'
  const message = `Missing 'role' in message: {"content":"${secret}"}`

  test.each([400, 500])('with status %p is in no fact, record or metric; the client hears what it may', (status) =>
    withRouter([openai], { ...quiet, policy: { retries: 0 } }, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'status', status, message })

      const response = await bench.chat({ prompt: secret, stream: false })
      const told = await response.text()
      await bench.idle()

      expect(response.status).toBeGreaterThanOrEqual(400)
      if (status === 400) expect(told).toContain(secret)
      expect(JSON.stringify(bench.facts)).not.toContain('vault code')
      expect(JSON.stringify(bench.facts)).toContain("Missing 'role'")
      expect(JSON.stringify(await bench.json('/api/v1/requests'))).not.toContain('vault code')
      expect(await bench.metrics()).not.toContain('vault code')
    }),
  )

  test('inside an answer of status 200 neither', () =>
    withRouter([openai], { ...quiet, policy: { retries: 0 } }, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'body_error', shape: 'event', afterChunks: 1, message })

      await (await bench.chat({ prompt: secret })).text()
      await bench.idle()

      expect(JSON.stringify(bench.facts)).not.toContain('vault code')
    }))
})

test('no key and no prompt is kept, whatever the path and however broken the body', () =>
  withRouter([openai, { kind: 'ollama' }], quiet, async (bench) => {
    const marker = 'zebra-marker-7391'
    const key = 'sk-marker-5512'
    const headers = { authorization: `Bearer ${key}`, 'x-api-key': key, cookie: key }
    const bodies = [
      { model: 'm', stream: false, input: marker, prompt: marker, messages: [{ role: 'user', content: marker }] },
      { model: 'm', stream: false, input: { [marker]: 1 }, prompt: { [marker]: 1 }, messages: marker, tools: marker },
    ].map((body) => JSON.stringify(body))
    bodies.push(`{"model":"m","messages":[{"role":"user","content":"${marker}\\q"}]`)
    for (const path of jsonPaths) {
      for (const body of bodies) {
        await (await send(bench, `${path}?key=${key}`, body, { ...headers, 'content-type': 'application/json' })).text()
      }
    }
    await bench.idle()

    const kept = [
      JSON.stringify(bench.facts),
      JSON.stringify(await bench.json('/api/v1/requests?limit=1000')),
      JSON.stringify(await bench.json('/api/v1/actors')),
      await bench.metrics(),
    ].join('\n')
    expect(kept).not.toContain(marker)
    expect(kept).not.toContain(key)
  }))
