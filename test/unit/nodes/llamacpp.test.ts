import { afterEach, describe, expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { createLlamacpp } from '../../../src/nodes/llamacpp'
import { NodeFault } from '../../../src/ports/node-gateway'
import { nodeAt, recording, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

let stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops) stop()
  stops = []
})
const play = (recorded: Parameters<typeof replay>[0]) => {
  const server = replay(recorded)
  stops.push(server.stop)
  return server
}

type Status = 'unloaded' | 'loading' | 'loaded' | 'sleeping'

/** A router whose children change state one look at `/models` after the command. */
const router = (start: Record<string, Status>, options: { broken?: string[]; failedBefore?: string[] } = {}) => {
  const state = new Map<string, Status>(Object.entries(start))
  const failed = new Set(options.failedBefore)
  const stale = new Set<string>()
  const next = new Map<string, Status>()
  const commands: string[] = []
  const refuse = (message: string) => Response.json({ error: { code: 400, message } }, { status: 400 })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      if (path === '/models') {
        const data = [...state].map(([id, value]) => ({
          id,
          status: { value, ...((failed.has(id) || stale.delete(id)) && { failed: true, exit_code: 1 }) },
        }))
        for (const [id, value] of next) state.set(id, value)
        for (const id of next.keys()) if (options.broken?.includes(id)) failed.add(id)
        next.clear()
        return Response.json({ data })
      }
      const { model } = (await request.json()) as { model: string }
      commands.push(`${path.replace('/models/', '')} ${model}`)
      const now = state.get(model)
      if (now === undefined) return Response.json({ error: { message: 'model not found' } }, { status: 404 })
      if (path === '/models/load') {
        if (now !== 'unloaded') return refuse('model is already running')
        // A child that failed before shows that once more before its new state.
        if (!failed.delete(model)) state.set(model, 'loading')
        else stale.add(model)
        next.set(model, options.broken?.includes(model) ? 'unloaded' : 'loaded')
      } else {
        if (now === 'unloaded') return refuse('model is not running')
        next.set(model, 'unloaded')
      }
      return Response.json({ success: true })
    },
  })
  stops.push(() => void server.stop(true))
  return { node: nodeAt(`http://127.0.0.1:${server.port}`, 'llamacpp'), state, commands }
}

describe('router mode', () => {
  const adapter = createLlamacpp()

  test('load resolves when the child answers', async () => {
    const { node, state, commands } = router({ a: 'unloaded' })
    await adapter.load?.(node, 'a', { evicts: [] }, http, signal)
    expect(commands).toEqual(['load a'])
    expect(state.get('a')).toBe('loaded')
  })

  test('load stops what it evicts first, and waits for it', async () => {
    const { node, state, commands } = router({ a: 'unloaded', b: 'loaded' })
    await adapter.load?.(node, 'a', { evicts: ['b'] }, http, signal)
    expect(commands).toEqual(['unload b', 'load a'])
    expect(state.get('b')).toBe('unloaded')
  })

  test('load of a model that another client is loading waits for the same load', async () => {
    const { node, state } = router({ a: 'loading' })
    setTimeout(() => state.set('a', 'loaded'), 20)
    await adapter.load?.(node, 'a', { evicts: [] }, http, signal)
    expect(state.get('a')).toBe('loaded')
  })

  test('load starts a sleeping child anew', async () => {
    const { node, commands } = router({ a: 'sleeping' })
    await adapter.load?.(node, 'a', { evicts: [] }, http, signal)
    expect(commands).toEqual(['unload a', 'load a'])
  })

  test('a child that ends while it loads is a fault with its exit code', async () => {
    const { node } = router({ a: 'unloaded' }, { broken: ['a'] })
    const error = await adapter.load?.(node, 'a', { evicts: [] }, http, signal).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(NodeFault)
    expect((error as NodeFault).message).toContain('rig could not load a: its process ended with exit code 1')
  })

  test('the failure of an earlier attempt is not taken for one of this', async () => {
    const { node, state } = router({ a: 'unloaded' }, { failedBefore: ['a'] })
    await adapter.load?.(node, 'a', { evicts: [] }, http, signal)
    expect(state.get('a')).toBe('loaded')
  })

  test('load of an unknown model is a fault', async () => {
    const { node } = router({ a: 'unloaded' })
    const error = await adapter.load?.(node, 'x', { evicts: [] }, http, signal).catch((thrown: unknown) => thrown)
    expect((error as NodeFault).failure).toMatchObject({ class: 'status', status: 404, message: 'rig has no model x' })
  })

  test('unload of a model that is not running resolves', async () => {
    const { node, commands } = router({ a: 'unloaded' })
    await adapter.unload?.(node, 'a', http, signal)
    expect(commands).toEqual(['unload a'])
  })

  test('a child that was unloaded between list and look is still reported, without slots', async () => {
    const { routes, headers } = recording('llamacpp-router')
    const gone = { status: 400, body: { error: { code: 400, message: 'model is not loaded' } } }
    const server = play({ headers, routes: { ...routes, 'GET /props?model=org%2Fa%3AQ4&autoload=false': gone } })
    const { resident } = await adapter.report(nodeAt(server.url, 'llamacpp'), http, signal)
    expect(resident[0]).toEqual({ name: 'org/a:Q4', state: 'ready', contextTokens: 512 })
  })
})

describe('while the server loads and names nothing', () => {
  const loading = { status: 503, body: { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } } }

  test('the one configured model is reported as loading', async () => {
    const { url } = play({ routes: { 'GET *': loading } })
    const report = await createLlamacpp().report(nodeAt(url, 'llamacpp', { models: ['big'] }), http, signal)
    expect(report.resident).toEqual([{ name: 'big', state: 'loading' }])
    expect(report.models).toEqual([{ name: 'big' }])
  })

  test('without one the poll fails, rather than saying that it has no models', async () => {
    const { url } = play({ routes: { 'GET *': loading } })
    const error = await createLlamacpp()
      .report(nodeAt(url, 'llamacpp'), http, signal)
      .catch((thrown: unknown) => thrown)
    expect((error as NodeFault).failure).toMatchObject({ class: 'overloaded', status: 503 })
    expect((error as NodeFault).message).toBe('rig is still loading its model')
  })
})

describe('the question for busy slots', () => {
  const idle = { status: 200, body: [{ id: 0, is_processing: false }] }
  const busy = { status: 200, body: [{ id: 0, is_processing: true }] }
  const asked = (log: string[]): number => log.filter((line) => line === 'GET /slots').length

  const server = () => {
    const { routes, headers } = recording('llamacpp-single')
    const changing: Record<string, unknown> = { ...routes, 'GET /slots': idle }
    const played = play({ headers, routes: changing as typeof routes })
    const adapter = createLlamacpp()
    const poll = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) await adapter.report(nodeAt(played.url, 'llamacpp'), http, signal)
    }
    return { ...played, changing, poll }
  }

  test('thins out while the server is idle, so that it may fall asleep', async () => {
    const { log, poll } = server()
    await poll(12)
    expect(asked(log)).toBe(12)
    await poll(100)
    // Then after 2, 4, 8, 16 and 32 polls in between.
    expect(asked(log)).toBe(18)
  })

  test('stays with every poll while something runs', async () => {
    const { log, changing, poll } = server()
    changing['GET /slots'] = busy
    await poll(30)
    expect(asked(log)).toBe(30)
  })

  test('comes back to every poll when the server wakes up', async () => {
    const { log, changing, poll } = server()
    await poll(40)
    const awake = changing['GET /props'] as { body: object }
    changing['GET /props'] = { status: 200, body: { ...awake.body, is_sleeping: true } }
    await poll(5)
    const before = asked(log)
    changing['GET /props'] = awake
    await poll(5)
    expect(asked(log)).toBe(before + 5)
  })
})
