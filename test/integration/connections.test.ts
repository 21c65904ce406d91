import { expect, test } from 'bun:test'
import { fastModel, slowModel, until } from '../support/fakes'
import type { Bench } from '../support/router'
import { ask, asked, type kinds, pairs, quietly, readSome, settledRecord } from './clients'
import { startWatch } from '../support/stopwatch'

const hot = (kind: (typeof kinds)[number], more: object = {}) => ({
  kind,
  resident: ['m'],
  models: [fastModel()],
  ...more,
})

const breakerOf = (bench: Bench, node: string) => bench.router.fleet.nodes().find(({ name }) => name === node)?.breaker

test.each(pairs)(
  'BL-V01 a half-open connection is given up at the first-byte limit, and a fresh one answers: %s on %s',
  (_shape, _kind, shape, kind) =>
    quietly([hot(kind)], { limits: { firstTokenTimeoutMs: 300 }, health: { pollEveryMs: 100 } }, async (bench) => {
      const [fake] = bench.fakes
      await (await ask(bench.url, shape)).text()
      fake?.faults.add({ type: 'half_open', times: 1 })
      const from = performance.now()

      const body = await (await ask(bench.url, shape)).text()

      expect(performance.now() - from).toBeLessThan(1_000)
      expect(shape.isWhole(body)).toBe(true)
      const { outcome, failures } = await settledRecord(bench, 2)
      expect(outcome).toMatchObject({ end: 'completed', node: 'a', retries: 1 })
      expect(failures).toMatchObject([{ node: 'a', class: 'first_byte_timeout', retried: true }])
      // The connection was at fault, not the node.
      expect(breakerOf(bench, 'a')).toBe('closed')
      // Nobody else meets that connection, or another of its age.
      expect((await ask(bench.url, shape)).headers.get('x-fleet-retries') ?? '0').toBe('0')
      await bench.idle()
    }),
)

/** So many at once, whose connections to the node are idle afterwards. */
const warm = async (bench: Bench, count: number): Promise<void> => {
  const shape = pairs[0]?.[2] as (typeof pairs)[number][2]
  const away = bench.fakes[0]?.faults.add({ type: 'slow', ms: 150 })
  await Promise.all(Array.from({ length: count }, async () => (await ask(bench.url, shape)).text()))
  away?.()
  expect(bench.router.upstream.stats()).toEqual({ open: count, idle: count })
}

test('BL-V01 one that is silent for too long takes the idle ones beside it along', () =>
  quietly(
    [hot('llamacpp', { slots: 4 })],
    { limits: { firstTokenTimeoutMs: 300 }, health: { pollEveryMs: 60_000 } },
    async (bench) => {
      await warm(bench, 4)
      bench.fakes[0]?.faults.add({ type: 'half_open' })

      const reply = await ask(bench.url, pairs[0]?.[2] as never)

      expect([reply.status, reply.headers.get('x-fleet-retries')]).toEqual([200, '1'])
      await reply.text()
      expect(bench.router.upstream.stats()).toEqual({ open: 1, idle: 1 })
      await bench.idle()
    },
  ))

test.each(pairs.slice(0, 3))(
  'BL-D05 a client that leaves before the first byte takes only its own along: %s on %s',
  (_shape, _kind, shape, kind) =>
    quietly(
      [hot(kind, { slots: 4 })],
      { health: { pollEveryMs: 200 }, describe: () => ({ maxConcurrency: 4 }) },
      async (bench) => {
        await warm(bench, 4)
        bench.fakes[0]?.faults.add({ type: 'slow', ms: 5_000, times: 1 })
        const before = asked(bench.fakes[0] as never).length
        const client = new AbortController()

        const asking = ask(bench.url, shape, { signal: client.signal })
        asking.catch(() => {})
        await until(() => asked(bench.fakes[0] as never).length > before)
        client.abort()

        expect((await settledRecord(bench, 5)).outcome).toMatchObject({ end: 'client_disconnected' })
        await until(() => bench.router.upstream.stats().open < 4)
        expect(bench.router.upstream.stats()).toEqual({ open: 3, idle: 3 })
        await bench.idle()
      },
    ),
)

test('BL-V01 an idle connection is not kept for as long as networks forget it', () =>
  quietly([hot('llamacpp')], { limits: { connectionIdleMs: 150 } }, async (bench) => {
    const [fake] = bench.fakes
    await (await ask(bench.url, pairs[0]?.[2] as never, { stream: false })).text()
    expect(bench.router.upstream.stats()).toEqual({ open: 1, idle: 1 })

    await until(() => bench.router.upstream.stats().open === 0, 1_000)
    fake?.faults.add({ type: 'half_open', on: 'inference' })
    const reply = await ask(bench.url, pairs[0]?.[2] as never, { stream: false })

    expect(reply.status).toBe(200)
    expect((await settledRecord(bench, 2)).outcome).toMatchObject({ end: 'completed', retries: 0 })
  }))

test.each(pairs)(
  'BL-V02 a request is sent once per attempt, and each attempt is told: %s on %s',
  (_shape, _kind, shape, kind) =>
    quietly([hot(kind), hot(kind), hot(kind)], { policy: { retries: 1 } }, async (bench) => {
      for (const stream of [true, false]) {
        const settled = bench.of('request.settled').length
        const before = bench.fakes.map((fake) => asked(fake).length)
        const away = bench.fakes.map((fake) => fake.faults.add({ type: 'reset', afterMs: 20 }))

        const reply = await ask(bench.url, shape, { stream })

        expect(reply.status).toBe(502)
        const arrivals = bench.fakes.map((fake, index) => asked(fake).length - (before[index] ?? 0))
        expect(arrivals.every((count) => count <= 1)).toBe(true)
        expect(arrivals.reduce((sum, count) => sum + count, 0)).toBe(2)
        const { failures, outcome } = await settledRecord(bench, settled + 1)
        expect(failures).toMatchObject([
          { class: 'reset', retried: true },
          { class: 'reset', retried: false },
        ])
        expect(outcome).toMatchObject({ end: 'failed', retries: 1 })
        for (const takeAway of away) takeAway()
        await until(() => bench.router.fleet.nodes().every(({ health }) => health === 'online'))
      }
    }),
)

test('BL-V02 on a kept-alive connection that is reset, the second attempt is ours and the last', () =>
  quietly([hot('llamacpp')], {}, async (bench) => {
    const [fake] = bench.fakes
    const shape = pairs[0]?.[2] as (typeof pairs)[number][2]
    await (await ask(bench.url, shape)).text()
    fake?.faults.add({ type: 'reset', times: 1 })

    const reply = await ask(bench.url, shape)

    expect(shape.isWhole(await reply.text())).toBe(true)
    expect(asked(fake as never)).toHaveLength(3)
    const { failures, outcome } = await settledRecord(bench, 2)
    expect(failures).toMatchObject([{ node: 'a', class: 'reset', retried: true }])
    expect(failures[0]?.message).toContain('kept-alive')
    expect(outcome).toMatchObject({ end: 'completed', retries: 1 })

    // Having been hung up on once, a connection is taken again only when it has outlived its answer by a quarter of a second.
    await Bun.sleep(260)
    fake?.faults.add({ type: 'reset' })
    expect((await ask(bench.url, shape)).status).toBe(502)
    // Once on the connection that was idle, once on a fresh one.
    expect(asked(fake as never)).toHaveLength(5)
    await bench.idle()
  }))

test.each(pairs)('BL-W04 a node that dies in the middle of a stream: %s on %s', (_shape, _kind, shape, kind) =>
  quietly(
    [hot(kind, { models: [slowModel('m', { decodePerSecond: 400 })], answerTokens: 10_000 })],
    { health: { pollEveryMs: 60_000 } },
    async (bench) => {
      const reply = await ask(bench.url, shape)
      const seen = await readSome(reply, (text) => text.includes('tok20.'))
      const sinceItDied = startWatch()
      bench.fakes[0]?.faults.add({ type: 'refuse' })
      const body = seen + (await readSome(reply, () => false))

      expect(sinceItDied()).toBeLessThan(50)
      expect(shape.isWhole(body)).toBe(false)
      expect(shape.records(body).filter(({ error }) => error !== undefined)).toHaveLength(1)
      expect(shape.records(body).at(-1)).toHaveProperty('error')
      const { outcome } = await settledRecord(bench)
      expect(outcome).toMatchObject({ end: 'incomplete', node: 'a', code: 'reset' })
      await until(() => ['suspect', 'offline'].includes(bench.router.fleet.nodes()[0]?.health ?? ''), 500)
      await bench.idle()
    },
  ),
)

test.each(pairs)('BL-W05 a node that dies before its first byte is replaced: %s on %s', (_shape, _kind, shape, kind) =>
  quietly([hot(kind), hot(kind), hot(kind), hot(kind)], {}, async (bench) => {
    const [a] = bench.fakes
    const fresh = async (): Promise<number> => {
      const taken = startWatch()
      await (await ask(bench.url, shape)).text()
      return taken()
    }
    // Every node in turn, so that the connections are warm and the usual time is known.
    const usual = Math.max(await fresh(), await fresh(), await fresh(), await fresh())
    a?.faults.add({ type: 'slow', ms: 2_500 })
    const before = asked(a as never).length
    const pending = ask(bench.url, shape)
    await until(() => asked(a as never).length === before + 1)
    await Bun.sleep(300)
    const sinceItDied = startWatch()
    a?.faults.add({ type: 'refuse' })

    const reply = await pending
    const body = await reply.text()

    expect(sinceItDied()).toBeLessThan(usual + 50)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('x-fleet-retries')).toBe('1')
    expect(reply.headers.get('x-fleet-node')).not.toBe('a')
    expect(shape.isWhole(body)).toBe(true)
    expect((await settledRecord(bench, 5)).failures).toMatchObject([{ node: 'a', class: 'reset', retried: true }])
    await bench.idle()
  }),
)
