import { expect, test } from 'bun:test'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { llamaswap } from '../../../src/nodes/llamaswap'
import type { UpstreamClient, UpstreamSend } from '../../../src/nodes/upstream'
import type { NodeFault } from '../../../src/ports/node-gateway'
import type { FakeNode } from '../../../src/sim/fake/options'
import { nodeAt, replay } from '../../fixtures/nodes/recorded'
import { fastModel, until, withFakes } from '../../support/fakes'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal

const models = ['org/a', 'b'].map((name) => fastModel(name))
const nodeOf = (fake: FakeNode) => nodeAt(fake.url, 'llamaswap')
const commands = (fake: FakeNode): string[] =>
  fake.log
    .map(({ method, path }) => `${method} ${path}`)
    .filter((line) => line !== 'GET /running' && line !== 'GET /v1/models' && line !== 'GET /api/version')

test('load starts the model by a question to its own server, slashes and all', () =>
  withFakes([{ kind: 'llamaswap', models }], async (fake) => {
    await llamaswap.load?.(nodeOf(fake!), 'org/a', { evicts: [] }, http, signal)

    expect(commands(fake!)).toEqual(['GET /upstream/org/a/health'])
    expect(fake!.resident()).toEqual(['org/a'])
  }))

test('load unloads what it evicts first', () =>
  withFakes([{ kind: 'llamaswap', models, maxResident: 2, resident: ['b'] }], async (fake) => {
    await llamaswap.load?.(nodeOf(fake!), 'org/a', { evicts: ['b'] }, http, signal)

    expect(commands(fake!)).toEqual(['POST /api/models/unload/b', 'GET /upstream/org/a/health'])
    expect(fake!.resident()).toEqual(['org/a'])
  }))

test('a model that starts is reported as loading, and one that stops as gone', () =>
  withFakes([{ kind: 'llamaswap', models: [fastModel('b', { loadMs: 80 })] }], async (fake) => {
    const load = llamaswap.load?.(nodeOf(fake!), 'b', { evicts: [] }, http, signal)
    await until(() => fake!.loads.length === 1)
    expect((await llamaswap.report(nodeOf(fake!), http, signal)).resident).toMatchObject([{ state: 'loading' }])

    await load
    expect((await llamaswap.report(nodeOf(fake!), http, signal)).resident).toMatchObject([{ state: 'ready' }])
    await llamaswap.unload?.(nodeOf(fake!), 'b', http, signal)
    expect((await llamaswap.report(nodeOf(fake!), http, signal)).resident).toEqual([])
  }))

test('polls start and stop nothing', () =>
  withFakes([{ kind: 'llamaswap', models, resident: ['b'] }], async (fake) => {
    for (let i = 0; i < 3; i += 1) await llamaswap.report(nodeOf(fake!), http, signal)

    expect(commands(fake!)).toEqual([])
    expect(fake!.resident()).toEqual(['b'])
  }))

test('a model that cannot be started is a fault with the words of llama-swap', () =>
  withFakes([{ kind: 'llamaswap', models }], async (fake) => {
    fake!.faults.add({ type: 'fail_load', message: 'upstream command exited prematurely', on: 'all' })
    const error = await llamaswap.load?.(nodeOf(fake!), 'b', { evicts: [] }, http, signal).catch((thrown) => thrown)
    expect((error as NodeFault).message).toBe(
      'rig could not load b: it answered 500: upstream command exited prematurely',
    )
  }))

test('a server without a health path, such as one for speech, counts as loaded when it runs', async () => {
  const running = { status: 200, body: { running: [{ model: 'tts', state: 'ready' }] } }
  const server = replay({ routes: { 'GET /running': running } })
  await llamaswap.load?.(nodeAt(server.url, 'llamaswap'), 'tts', { evicts: [] }, http, signal)
  server.stop()
  expect(server.log).toContain('GET /upstream/tts/health')
})

test('a model that was stopped again while it loaded is a fault', async () => {
  const server = replay({
    routes: {
      'GET /running': { status: 200, body: { running: [] } },
      'GET /upstream/m/health': { status: 200, body: { status: 'ok' } },
    },
  })
  const load = llamaswap.load?.(nodeAt(server.url, 'llamaswap'), 'm', { evicts: [] }, http, signal)
  const error = await load?.catch((thrown: unknown) => thrown)
  server.stop()
  expect((error as NodeFault).message).toBe('rig stopped m again while it was loading')
})

const answering = (status: number, contentLength: number, afterMs = 0): UpstreamClient => ({
  send: async () => {
    await Bun.sleep(afterMs)
    return { status, contentLength, headers: {}, read: async () => undefined, close() {} }
  },
  close() {},
  stats: () => ({ open: 0, idle: 0 }),
})

test('an empty 502 at once is a lost connection to the engine: sent again there, and nobody is at fault', async () => {
  const request = { url: 'http://rig/v1/chat/completions', method: 'POST', headers: {} } as UpstreamSend
  const send = (upstream: UpstreamClient) => llamaswap.send?.(request, upstream).catch((thrown) => thrown)

  const lost = await send(answering(502, 0))

  expect((lost as NodeFault).failure).toMatchObject({ class: 'reset', status: 502, stale: true })
  for (const [status, length] of [
    [502, 30],
    [200, 0],
  ] as const)
    expect(await send(answering(status, length))).toMatchObject({ status })
  // So late the engine had begun with it, and may have fallen over it.
  expect(await send(answering(502, 0, 520))).toMatchObject({ status: 502 })
})
