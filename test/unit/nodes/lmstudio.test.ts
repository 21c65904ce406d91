import { afterEach, describe, expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { createLmstudio } from '../../../src/nodes/lmstudio'
import type { NodeFault } from '../../../src/ports/node-gateway'
import type { FakeNode } from '../../../src/sim/fake/options'
import { nodeAt, recording, replay } from '../../fixtures/nodes/recorded'
import { fastModel, withFakes } from '../../support/fakes'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

let stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops) stop()
  stops = []
})

const models = ['a', 'b'].map((name) => fastModel(name))
const nodeOf = (fake: FakeNode) => nodeAt(fake.url, 'lmstudio')
const commands = (fake: FakeNode): string[] =>
  fake.log
    .filter(({ method }) => method === 'POST')
    .map(({ path, body }) => `${path.replace('/api/v1/models/', '')} ${Object.values(body as object).join(' ')}`)

describe('load', () => {
  const adapter = createLmstudio()

  test('resolves when the model is in memory, with the window that was asked for', () =>
    withFakes([{ kind: 'lmstudio', models }], async (fake) => {
      await adapter.load?.(nodeOf(fake!), 'A', { evicts: [], contextTokens: 4096 }, http, signal)

      expect(commands(fake!)).toEqual(['load a 4096'])
      expect(fake!.resident()).toEqual(['a'])
      const { resident } = await adapter.report(nodeOf(fake!), http, signal)
      expect(resident).toEqual([{ name: 'a', state: 'ready', contextTokens: 4096, slots: 4 }])
    }))

  test('makes no second copy of a model that is there and wide enough', () =>
    withFakes([{ kind: 'lmstudio', models, resident: ['a'] }], async (fake) => {
      await adapter.load?.(nodeOf(fake!), 'a', { evicts: [] }, http, signal)
      await adapter.load?.(nodeOf(fake!), 'a', { evicts: [], contextTokens: 8192 }, http, signal)

      expect(commands(fake!)).toEqual([])
    }))

  test('replaces a copy whose window is too narrow', () =>
    withFakes(
      [{ kind: 'lmstudio', models: [fastModel('a', { defaultContextTokens: 2048 })], resident: ['a'] }],
      async (fake) => {
        await adapter.load?.(nodeOf(fake!), 'a', { evicts: [], contextTokens: 4096 }, http, signal)

        expect(commands(fake!)).toEqual(['unload a', 'load a 4096'])
      },
    ))

  test('unloads what it evicts first, and waits for it', () =>
    withFakes([{ kind: 'lmstudio', models, resident: ['b'] }], async (fake) => {
      await adapter.load?.(nodeOf(fake!), 'a', { evicts: ['b'] }, http, signal)

      expect(commands(fake!)).toEqual(['unload b', 'load a'])
      expect(fake!.resident()).toEqual(['a'])
    }))

  test('of an unknown model is a fault', () =>
    withFakes([{ kind: 'lmstudio', models }], async (fake) => {
      const error = await adapter.load?.(nodeOf(fake!), 'x', { evicts: [] }, http, signal).catch((thrown) => thrown)
      expect((error as NodeFault).failure).toMatchObject({
        class: 'status',
        status: 404,
        message: 'rig has no model x',
      })
    }))

  test('that fails is a fault with the words of LM Studio', () =>
    withFakes([{ kind: 'lmstudio', models }], async (fake) => {
      fake!.faults.add({ type: 'fail_load', message: 'Failed to load model "a"', on: 'all' })
      const error = await adapter.load?.(nodeOf(fake!), 'a', { evicts: [] }, http, signal).catch((thrown) => thrown)
      expect((error as NodeFault).message).toContain('Failed to load model "a"')
    }))
})

test('unload removes every copy, whatever its name', async () => {
  const copies = new Set(['coder', 'org/m:2'])
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method === 'GET')
        return Response.json({ models: [{ key: 'org/m', loaded_instances: [...copies].map((id) => ({ id })) }] })
      const { instance_id } = (await request.json()) as { instance_id: string }
      return copies.delete(instance_id) ? Response.json({ instance_id }) : new Response('', { status: 404 })
    },
  })
  stops.push(() => void server.stop(true))

  await createLmstudio().unload?.(nodeAt(`http://127.0.0.1:${server.port}`, 'lmstudio'), 'org/m', http, signal)

  expect([...copies]).toEqual([])
})

describe('a server with the older API only', () => {
  const newer = 'GET /api/v1/models'
  const server = () => {
    const { routes } = recording('lmstudio-0.3')
    const changing: Record<string, unknown> = { ...routes }
    const played = replay({ routes: changing as typeof routes })
    stops.push(played.stop)
    const adapter = createLmstudio()
    return { ...played, changing, report: () => adapter.report(nodeAt(played.url, 'lmstudio'), http, signal) }
  }
  const asked = (log: readonly string[]): number => log.filter((line) => line === newer).length

  test('is asked for the newer one rarely, since it writes each such question into its log', async () => {
    const { log, report } = server()
    for (let i = 0; i < 31; i += 1) expect(await report()).toMatchObject({ canLoad: false, loadsOnRequest: true })
    expect(asked(log)).toBe(1)
    await report()
    expect(asked(log)).toBe(2)
  })

  test('that was replaced by a newer one is noticed', async () => {
    const { changing, report } = server()
    await report()
    changing[newer] = recording('lmstudio-0.4').routes[newer]
    for (let i = 0; i < 30; i += 1) await report()
    expect(await report()).toMatchObject({ canLoad: true })
  })

  test('a refused key is not taken for an older API', async () => {
    const { changing, log, report } = server()
    changing[newer] = { status: 401, body: { error: { message: 'invalid token' } } }
    const error = await report().catch((thrown: unknown) => thrown)
    expect((error as NodeFault).message).toContain('answered 401: invalid token')
    expect(log).toEqual([newer])
  })
})
