import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createFakeRandom } from '../../src/sim/fake/random'
import { fastModel, until, withFakes } from '../support/fakes'
import { host, resident } from '../support/host'
import type { Bench } from '../support/router'
import { ask, asked, ollamaChat, openAiChat, quietly, type RawClient, rawClient, type Json, shapes } from './clients'

const MB = 1_000_000

const endsOf = (bench: Bench): Record<string, number> => {
  const ends: Record<string, number> = {}
  for (const { outcome } of bench.of('request.settled')) ends[outcome.end] = (ends[outcome.end] ?? 0) + 1
  return ends
}

const hexPort = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`

/** The kernel still holds the router's side of this client's connection open. */
const isEstablished = (port: number, client: RawClient): boolean => {
  const [here, there] = [hexPort(port), hexPort(client.socket.localPort ?? 0)]
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/))
    .some((row) => row[1]?.endsWith(here) && row[2]?.endsWith(there) && row[3] === '01')
}

/** Everything that counts requests says zero. */
const expectZero = async (bench: Bench): Promise<void> => {
  await bench.idle(10_000)
  const { fleet, upstream } = bench.router
  expect(fleet.overview()).toMatchObject({ inFlight: 0, waiting: 0, held: 0, requests: {} })
  expect(fleet.waiters()).toEqual([])
  for (const queue of fleet.queues()) expect(queue).toMatchObject({ inFlight: 0, waiting: 0, lingering: 0 })
  await until(() => upstream.stats().open === upstream.stats().idle)
  const metrics = await bench.metrics()
  expect(metrics).not.toMatch(/^fleet_(in_flight|waiting|held)[^\n]* [1-9]/m)
}

test('BL-D08 500 clients with random cancels never put more than its 3 on a node, and leave nothing behind', async () => {
  const seed = Number(process.env.FLEET_TEST_SEED ?? Date.now() % 1_000_000)
  console.log(`random cancels, seed ${seed}`)
  const random = createFakeRandom(seed)
  const models = [fastModel('m', { decodePerSecond: 1_500, prefillPerSecond: 20_000 })]
  await quietly([{ kind: 'llamacpp', slots: 3, models, answerTokens: 24, keepLog: false }], {}, async (bench) => {
    const [fake] = bench.fakes
    const client = async (): Promise<void> => {
      const leaving = new AbortController()
      const shape = shapes[Math.floor(random() * shapes.length)] ?? openAiChat
      const stays = random() < 0.35
      const afterMs = random() * 1_500
      const timer = stays ? undefined : setTimeout(() => leaving.abort(), afterMs)
      try {
        const reply = await ask(bench.url, shape, { signal: leaving.signal, stream: random() < 0.8 })
        await reply.text()
      } catch {}
      clearTimeout(timer)
    }

    await Promise.all(Array.from({ length: 500 }, client))

    await until(() => bench.of('request.settled').length === bench.of('request.arrived').length, 10_000)
    const ends = endsOf(bench)
    expect(fake?.peak()).toBe(3)
    expect(ends.completed).toBeGreaterThan(100)
    expect(ends.client_disconnected).toBeGreaterThan(20)
    expect(Object.keys(ends).sort()).toEqual(['client_disconnected', 'completed'])
    await expectZero(bench)

    const again = Array.from({ length: 3 }, () => ask(bench.url, openAiChat))
    await until(() => fake?.running() === 3)
    await Promise.all(again.map(async (reply) => (await reply).text()))
    await expectZero(bench)
  })
}, 40_000)

test(
  'BL-W02 700 slow streams run at once through keep-alive clients, each to its own end',
  () =>
    quietly(
      [
        {
          kind: 'openai',
          slots: 800,
          answerTokens: 8,
          models: [fastModel('m', { decodePerSecond: 2.5 })],
          keepLog: false,
        },
      ],
      { describe: () => ({ maxConcurrency: 800 }) },
      async (bench) => {
        const [fake] = bench.fakes
        // The client library of Bun runs at most 512 requests at once, so these speak for themselves.
        const clients = await Promise.all(Array.from({ length: 700 }, () => rawClient(bench.router.port)))
        const askAll = (): void => {
          for (const [index, client] of clients.entries())
            client.post(openAiChat.path, openAiChat.body({ prompt: `prompt ${index}` }))
        }

        askAll()
        await until(() => fake?.running() === 700, 10_000)
        expect(bench.router.fleet.overview().inFlight).toBe(700)
        expect(bench.router.upstream.stats().open).toBeGreaterThanOrEqual(700)
        await until(() => bench.of('request.settled').length === 700, 15_000)
        expect(endsOf(bench)).toEqual({ completed: 700 })
        await until(() => clients.every((client) => client.text().endsWith('0\r\n\r\n')))
        const texts = clients.map((client) => [...client.text().matchAll(/"content":"( ?tok\d+)\.(\w+)"/g)])
        for (const words of texts) {
          expect(words.map((word) => word[1]?.trim())).toEqual(Array.from({ length: 8 }, (_, i) => `tok${i + 1}`))
          expect(new Set(words.map((word) => word[2])).size).toBe(1)
        }

        // The same connections again, both sides kept alive.
        askAll()
        await until(() => fake?.running() === 700, 10_000)
        for (const client of clients) client.reset()
        await until(() => fake?.running() === 0, 5_000)
        expect(clients.some((client) => client.closed)).toBe(true)
        await expectZero(bench)
        expect(endsOf(bench)).toEqual({ completed: 700, client_disconnected: 700 })
      },
    ),
  45_000,
)

/** Resident memory of a process, in bytes. */
const rssOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024

test(
  'BL-D09 a client that reads nothing of 200 MB costs less than 40 MB, stops the node and is cut',
  () =>
    withFakes([{ kind: 'llamacpp' }], async (fake) => {
      fake?.faults.add({ type: 'huge', megabytes: 200 })
      const script = new URL('./router-process.ts', import.meta.url).pathname
      const child = Bun.spawn([process.execPath, script, fake?.url ?? ''], { stdout: 'pipe', stderr: 'inherit' })
      try {
        const { value } = await child.stdout.getReader().read()
        const { port } = new URL(new TextDecoder().decode(value).trim())
        const json = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json() as Promise<Json>
        while ((await json('/api/v1/nodes')).nodes?.[0]?.health !== 'online') await Bun.sleep(10)
        const before = rssOf(child.pid)
        const client = await rawClient(Number(port))
        client.pause()
        client.post(openAiChat.path, openAiChat.body({}))

        let most = 0
        let record: Json
        do {
          await Bun.sleep(50)
          most = Math.max(most, rssOf(child.pid))
          record = await json('/api/v1/requests/last').catch(() => undefined)
        } while (record?.outcome === undefined)

        expect(most - before).toBeLessThan(40 * MB)
        expect(record.outcome).toMatchObject({
          end: 'client_disconnected',
          code: 'client_stalled',
          phase: 'generating',
        })
        expect(record.outcome.bytes).toBeGreaterThan(MB)
        expect(record.outcome.bytes).toBeLessThan(60 * MB)
        await until(() => fake?.running() === 0)
        // The connection is not kept either, although the client still does not read.
        await until(() => !isEstablished(Number(port), client), 8_000)
        client.socket.resume()
        await until(() => client.closed)
        expect(client.text()).not.toContain('[DONE]')
      } finally {
        child.kill()
        await child.exited
      }
    }),
  30_000,
)

test(
  'BL-D09 stalled readers are cut after limits.stream_idle_timeout, and their 10 connections work again',
  () =>
    quietly(
      [{ kind: 'openai', slots: 10, models: [fastModel()] }],
      { describe: () => ({ maxConcurrency: 10 }), limits: { streamIdleTimeoutMs: 300 } },
      async (bench) => {
        const [fake] = bench.fakes
        fake?.faults.add({ type: 'huge', megabytes: 60 })
        const clients: RawClient[] = []
        for (let index = 0; index < 50; index += 1) {
          const client = await rawClient(bench.router.port)
          client.pause()
          client.post(index % 2 ? ollamaChat.path : openAiChat.path, openAiChat.body({}))
          clients.push(client)
        }

        await until(() => bench.of('request.settled').length === 50, 15_000)

        expect(endsOf(bench)).toEqual({ client_disconnected: 50 })
        expect(bench.of('request.settled').every(({ outcome }) => outcome.code === 'client_stalled')).toBe(true)
        expect(bench.of('attempt.failed')).toEqual([])
        for (const client of clients) client.socket.destroy()
        await expectZero(bench)
        fake?.faults.clear()
        const before = asked(fake as never).length
        const replies = await Promise.all(Array.from({ length: 10 }, () => ask(bench.url, openAiChat)))
        for (const reply of replies) expect(openAiChat.isWhole(await reply.text())).toBe(true)
        expect(asked(fake as never)).toHaveLength(before + 10)
      },
    ),
  30_000,
)

test('BL-D08 whatever leaves, fails or ends in whatever order, nothing stays in flight', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('ask' as const), at: fc.nat(20) }) },
    fc.record({ do: fc.constantFrom('leave', 'start', 'finish', 'fail', 'vanish', 'wait' as const), at: fc.nat(20) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const bench = host({ a: resident('m', 2), b: resident('m', 1) }, { limits: { waitingTotal: 20 } })
      await bench.ready()
      const clients: ReturnType<typeof bench.submit>[] = []
      for (const { do: what, at } of steps) {
        const running = bench.gateway.running[at % Math.max(1, bench.gateway.running.length)]
        const client = clients[at % Math.max(1, clients.length)]
        if (what === 'ask') clients.push(bench.submit())
        else if (what === 'leave') client?.leave()
        else if (what === 'start') running?.start()
        else if (what === 'finish') running?.finish()
        else if (what === 'fail') running?.fail()
        else if (what === 'vanish') running?.leave()
        else await bench.clock.advance(at * 100)
        expect(bench.gateway.running.filter(({ call }) => call.node.name === 'a').length).toBeLessThanOrEqual(2)
        expect(bench.gateway.running.filter(({ call }) => call.node.name === 'b').length).toBeLessThanOrEqual(1)
      }
      for (const { leave } of clients) leave()
      await bench.clock.advance(30_000)
      bench.expectIdle()
    }),
    { numRuns: 100 },
  )
})
