import { afterEach, describe, expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { createOllama } from '../../../src/nodes/ollama'
import { NodeFault } from '../../../src/ports/node-gateway'
import { nodeAt, type Replay, recording, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

interface Request {
  readonly path: string
  readonly body: Record<string, unknown>
}

let stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops) stop()
  stops = []
})
const play = (routes: Parameters<typeof replay>[0]['routes']): Replay => {
  const server = replay({ routes })
  stops.push(server.stop)
  return server
}

/** An Ollama that keeps models in memory; unloading takes effect after `leavingPolls` looks at `/api/ps`. */
const engine = (
  options: { loaded?: string[]; embedOnly?: string[]; leavingPolls?: number; broken?: string[] } = {},
) => {
  const loaded = new Set(options.loaded)
  const leaving = new Map<string, number>()
  const requests: Request[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      const body = request.method === 'POST' ? ((await request.json()) as Record<string, unknown>) : {}
      if (path === '/api/ps') {
        for (const [name, polls] of leaving) polls > 0 ? leaving.set(name, polls - 1) : loaded.delete(name)
        requests.push({ path, body: {} })
        return Response.json({ models: [...loaded].map((name) => ({ name })) })
      }
      requests.push({ path, body })
      const model = String(body.model)
      if (options.broken?.includes(model))
        return Response.json({ error: 'llama runner process has terminated' }, { status: 500 })
      if (body.keep_alive === 0) {
        if (!loaded.has(model)) return Response.json({ error: `model '${model}' not found` }, { status: 404 })
        leaving.set(model, options.leavingPolls ?? 0)
        return Response.json({ done: true, done_reason: 'unload' })
      }
      if (path === '/api/generate' && options.embedOnly?.includes(model)) {
        return Response.json({ error: `"${model}" does not support generate` }, { status: 400 })
      }
      loaded.add(model)
      return Response.json(path === '/api/embed' ? { embeddings: [] } : { done: true, done_reason: 'load' })
    },
  })
  stops.push(() => void server.stop(true))
  return { url: `http://127.0.0.1:${server.port}`, loaded, requests }
}

const posts = (requests: readonly Request[]): Request[] => requests.filter((one) => one.path !== '/api/ps')

describe('load', () => {
  test('sends an empty generate with the window and the keep-alive of the node', async () => {
    const { url, requests } = engine()
    const node = nodeAt(url, 'ollama', { keepAlive: '30m' })

    await createOllama().load?.(node, 'qwen3:8b', { contextTokens: 16_384, evicts: [] }, http, signal)

    const body = { model: 'qwen3:8b', stream: false, keep_alive: '30m', options: { num_ctx: 16_384 } }
    expect(requests).toEqual([{ path: '/api/generate', body }])
  })

  test('leaves window and keep-alive to the engine when nothing is configured', async () => {
    const { url, requests } = engine()
    await createOllama().load?.(nodeAt(url, 'ollama'), 'm', { evicts: [] }, http, signal)
    expect(requests[0]?.body).toEqual({ model: 'm', stream: false })
  })

  test('sends bare seconds as a number: Go rejects "-1"', async () => {
    const { url, requests } = engine()
    await createOllama().load?.(nodeAt(url, 'ollama', { keepAlive: '-1' }), 'm', { evicts: [] }, http, signal)
    expect(requests[0]?.body.keep_alive).toBe(-1)
  })

  test('loads a model that only embeds through embed with no input', async () => {
    const { url, requests, loaded } = engine({ embedOnly: ['nomic'] })

    await createOllama().load?.(nodeAt(url, 'ollama'), 'nomic', { contextTokens: 2_048, evicts: [] }, http, signal)

    expect(requests.at(-1)).toEqual({
      path: '/api/embed',
      body: { model: 'nomic', input: [], options: { num_ctx: 2_048 } },
    })
    expect(loaded.has('nomic')).toBe(true)
  })

  test('unloads what it evicts, and waits until it is gone, before it loads', async () => {
    const { url, requests, loaded } = engine({ loaded: ['old:latest'], leavingPolls: 1 })

    await createOllama().load?.(nodeAt(url, 'ollama'), 'new', { evicts: ['old:latest'] }, http, signal)

    expect(posts(requests).map((one) => one.body.model)).toEqual(['old:latest', 'new'])
    expect(requests.map((one) => one.path)).toEqual(['/api/generate', '/api/ps', '/api/ps', '/api/generate'])
    expect([...loaded]).toEqual(['new'])
  })

  test('evicting a model that is not there any more is no failure', async () => {
    const { url, loaded } = engine()
    await createOllama().load?.(nodeAt(url, 'ollama'), 'new', { evicts: ['old'] }, http, signal)
    expect([...loaded]).toEqual(['new'])
  })

  test("fails with the engine's words", async () => {
    const { url } = engine({ broken: ['m'] })
    const load = createOllama().load?.(nodeAt(url, 'ollama'), 'm', { evicts: [] }, http, signal)
    await expect(load).rejects.toThrow('llama runner process has terminated')
  })

  test('a model that never leaves ends the load with the signal, saying so (BL-C03)', async () => {
    const { url } = engine({ loaded: ['stuck'], leavingPolls: 1_000 })

    const load = createOllama().load?.(
      nodeAt(url, 'ollama'),
      'new',
      { evicts: ['stuck'] },
      http,
      AbortSignal.timeout(60),
    )

    const error = await load?.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(NodeFault)
    expect((error as NodeFault).message).toContain('stuck to leave the memory of rig')
  })
})

test('unload sends keep_alive 0 and resolves when the model is gone', async () => {
  const { url, requests, loaded } = engine({ loaded: ['m'] })
  await createOllama().unload?.(nodeAt(url, 'ollama'), 'm', http, signal)
  expect(requests[0]).toEqual({ path: '/api/generate', body: { model: 'm', keep_alive: 0, stream: false } })
  expect([...loaded]).toEqual([])
})

describe('report', () => {
  test('asks for the traits of a model once per digest', async () => {
    const server = play(recording('ollama-0.12').routes)
    const adapter = createOllama()

    await adapter.report(nodeAt(server.url, 'ollama'), http, signal)
    const second = await adapter.report(nodeAt(server.url, 'ollama'), http, signal)

    expect(server.log.filter((line) => line.startsWith('POST')).sort()).toEqual([
      'POST /api/show#gemma3:4b',
      'POST /api/show#gone:1b',
    ])
    expect(second.models[0]?.capabilities).toEqual(['chat', 'completion', 'vision'])
  })

  test('asks anew when the digest of a name changed', async () => {
    const { routes } = recording('ollama-0.12')
    const tags = (digest: string) => ({ status: 200, body: { models: [{ name: 'gemma3:4b', digest }] } })
    const changing: Record<string, { status: number; body?: unknown }> = { ...routes, 'GET /api/tags': tags('one') }
    const server = play(changing)
    const adapter = createOllama()

    await adapter.report(nodeAt(server.url, 'ollama'), http, signal)
    changing['GET /api/tags'] = tags('two')
    await adapter.report(nodeAt(server.url, 'ollama'), http, signal)

    expect(server.log.filter((line) => line === 'POST /api/show#gemma3:4b')).toHaveLength(2)
  })

  test('looks at a few new models per poll, so that a first poll of a full disk is short', async () => {
    const models = Array.from({ length: 40 }, (_, i) => ({ name: `m${i}`, digest: `d${i}` }))
    const server = play({
      ...recording('ollama-0.12').routes,
      'GET /api/tags': { status: 200, body: { models } },
      'POST *': { status: 200, body: { capabilities: ['completion'] } },
    })
    const adapter = createOllama()
    const told = async (): Promise<number> =>
      (await adapter.report(nodeAt(server.url, 'ollama'), http, signal)).models.filter((one) => one.capabilities).length

    expect([await told(), await told(), await told()]).toEqual([16, 32, 40])
  })

  test('keeps a model whose expiry is past, with the expiry (BL-C03)', async () => {
    const server = play(recording('ollama-0.33').routes)
    const { resident } = await createOllama().report(nodeAt(server.url, 'ollama'), http, signal)
    const stuck = resident.find((one) => one.name === 'nomic-embed-text:latest')
    expect(stuck?.expiresAt).toBe(Date.UTC(2026, 7, 1, 10))
  })
})
