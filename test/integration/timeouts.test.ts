import { describe, expect, test } from 'bun:test'
import type { Samples } from '../../src/ports/samples'
import { fastModel, slowModel, until } from '../support/fakes'
import { host, noSamples, resident } from '../support/host'
import {
  ask,
  asked,
  type kinds,
  ollamaChat,
  openAiChat,
  pairs,
  quietly,
  readSome,
  settledRecord,
  shapes,
} from './clients'

const MINUTE = 60_000
const hot = (kind: (typeof kinds)[number], more: object = {}) => ({
  kind,
  resident: ['m'],
  models: [fastModel()],
  ...more,
})

describe('one limit for each phase', () => {
  test.concurrent.each(pairs)(
    'BL-T01 a head that comes late is no failure of the connection: %s on %s',
    (_shape, _kind, shape, kind) =>
      quietly([hot(kind)], { limits: { connectTimeoutMs: 500, streamIdleTimeoutMs: 500 } }, async (bench) => {
        bench.fakes[0]?.faults.add({ type: 'slow', ms: 1_200 })

        const body = await (await ask(bench.url, shape)).text()

        expect(shape.isWhole(body)).toBe(true)
        expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', retries: 0 })
      }),
  )

  test('BL-T01 with the limits as they are by default, a head after 95 s is waited for', async () => {
    const bench = host({ a: resident() })
    await bench.ready()
    const { outcome } = bench.submit()
    await bench.clock.advance(95_000)
    const [running] = bench.gateway.running

    running?.start()
    await bench.clock.advance(1_000)
    running?.finish()

    expect(await outcome).toHaveProperty('reply')
    expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed', retries: 0, ttftMs: 95_000 } }])
    bench.expectIdle()
  })

  test('BL-T01 the limit for the first byte ends with its name', () =>
    quietly([hot('llamacpp')], { limits: { firstTokenTimeoutMs: 200 } }, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'freeze' })
      for (const [index, shape] of shapes.entries()) {
        const reply = await ask(bench.url, shape)

        expect(reply.status).toBe(504)
        expect(await reply.text()).toContain('limits.first_token_timeout')
        expect((await settledRecord(bench, index + 1)).failures).toMatchObject([{ class: 'first_byte_timeout' }])
        await bench.idle()
      }
    }))

  test.concurrent.each(pairs)(
    'BL-T01 the limit between two bytes ends with its name, in-band: %s on %s',
    (_shape, _kind, shape, kind) =>
      quietly([hot(kind)], { limits: { streamIdleTimeoutMs: 120 } }, async (bench) => {
        bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 3, ms: MINUTE })

        const body = await (await ask(bench.url, shape)).text()

        expect(shape.text(body)).toMatch(/^tok1\./)
        expect(JSON.stringify(shape.records(body).at(-1))).toContain('limits.stream_idle_timeout')
        expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'incomplete', code: 'idle_timeout' })
        await until(() => bench.fakes[0]?.running() === 0)
        await bench.idle()
      }),
  )

  test('BL-T01 the limit for connecting is short, and ends with its name', async () => {
    const bench = host({ a: resident() })
    await bench.ready()
    const { outcome } = bench.submit()
    await bench.clock.advance(3_000)

    bench.gateway.reports.set('a', 'hang')
    bench.gateway.running[0]?.fail({ class: 'connect_timeout', message: 'no connection within 3000 ms' })
    await bench.clock.advance(30_000)

    expect(String(((await outcome) as { error: Error }).error.message)).toContain('no connection within 3000 ms')
    expect(bench.settled()).toMatchObject([{ outcome: { end: 'expired', status: 503 } }])
    bench.expectIdle()
  })
})

describe('a hung node', () => {
  test(
    'BL-T02 delays nobody but those who need it, and opens its breaker',
    () =>
      quietly(
        [
          { kind: 'llamacpp', models: [fastModel('only-a')] },
          { kind: 'llamacpp', models: [fastModel('only-b')] },
        ],
        { limits: { firstTokenTimeoutMs: 700 }, health: { breakerFailures: 4 } },
        async (bench) => {
          const timed = async (): Promise<number[]> => {
            const times: number[] = []
            for (let index = 0; index < 50; index += 1) {
              const from = performance.now()
              expect((await ask(bench.url, openAiChat, { model: 'only-b', stream: false })).status).toBe(200)
              times.push(performance.now() - from)
            }
            return times.sort((a, b) => a - b)
          }
          await timed()
          const [usual] = [await timed()]
          bench.fakes[0]?.faults.add({ type: 'freeze' })
          const leaving = new AbortController()
          const stuck = Array.from({ length: 200 }, () =>
            ask(bench.url, openAiChat, { model: 'only-a', signal: leaving.signal }).catch(() => {}),
          )
          await until(
            () =>
              bench.fakes[0]?.log.filter(({ events }) => events.some(({ event }) => event === 'frozen')).length === 4,
          )

          const beside = await timed()

          // Waiting for the hung node would show as hundreds of milliseconds, in the middle as much as at the end.
          expect(beside[24]).toBeLessThan((usual?.[24] ?? 0) * 1.5 + 5)
          expect(beside.at(-1)).toBeLessThan(300)
          await until(
            () => bench.of('node.breaker').some(({ node, breaker }) => node === 'a' && breaker === 'open'),
            3_000,
          )
          expect(bench.of('node.breaker').every(({ node }) => node === 'a')).toBe(true)
          leaving.abort()
          await Promise.all(stuck)
          await bench.idle()
        },
      ),
    20_000,
  )

  test('BL-T02 that swallows connections holds back only its own', async () => {
    const bench = host({ a: resident('only-a', 4), b: resident('only-b', 4) })
    await bench.ready()
    const stuck = Array.from({ length: 200 }, () => bench.submit({ asked: 'only-a' }))
    await bench.clock.advance(10)
    expect(bench.gateway.running).toHaveLength(4)

    bench.gateway.onForward = (running) => {
      if (running.call.node.name !== 'b') return
      running.start()
      running.finish()
    }
    const others = Array.from({ length: 50 }, () => bench.submit({ asked: 'only-b' }))
    await bench.clock.advance(5)
    for (const { outcome } of others) expect(await outcome).toHaveProperty('reply')

    await bench.clock.advance(3_000)
    for (const running of [...bench.gateway.running])
      running.fail({ class: 'connect_timeout', message: 'no connection' })
    await bench.clock.advance(3_000)
    for (const running of [...bench.gateway.running])
      running.fail({ class: 'connect_timeout', message: 'no connection' })
    await bench.clock.advance(10)
    expect(bench.of('node.breaker').filter(({ breaker }) => breaker === 'open')).toMatchObject([{ node: 'a' }])
    for (const { leave } of stuck) leave()
    await bench.clock.advance(1_000)
    bench.expectIdle()
  })
})

describe('the deadline of a load', () => {
  const SIZE_GB = 70
  const cold = { models: [{ name: 'm', sizeGb: SIZE_GB }], resident: [], canLoad: true, canUnload: true }
  const measured = (gbPerSecond: number): Samples => ({
    ...noSamples(),
    loadMs: (_node: string, _model: string, sizeGb = 0) => ({ meanMs: (sizeGb / gbPerSecond) * 1_000, samples: 3 }),
  })

  /** A load that takes so long, in ms; how the request ended. */
  const loading = async (tookMs: number, samples?: Samples) => {
    const bench = host(
      { a: cold },
      { describe: () => ({ kind: 'ollama' }), ...(samples === undefined ? {} : { samples }) },
    )
    await bench.ready()
    bench.gateway.onForward = (running) => {
      running.start()
      running.finish()
    }
    bench.submit()
    await bench.clock.advance(tookMs)
    bench.gateway.loads[0]?.done()
    await bench.clock.advance(100)
    return bench
  }

  test('BL-T04 grows with the rate that was measured: 22 minutes at 54 MB/s are fine', async () => {
    const bench = await loading(22 * MINUTE, measured(0.054))

    expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed' } }])
    expect(bench.of('load.failed')).toEqual([])
  })

  test('BL-T04 grows with the size before anything was measured, so that the first load can be', async () => {
    const bench = await loading(22 * MINUTE)

    expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed' } }])
  })

  test.each([
    ['on a fast node', measured(2), 6 * MINUTE],
    ['on the slowest node, for there is a cap', measured(0.001), 3 * 60 * MINUTE],
    ['on a node without a measurement', undefined, 60 * MINUTE],
  ] as const)('BL-T04 ends a load that hangs %s, and names budget, size and knob', async (_where, samples, afterMs) => {
    const bench = await loading(afterMs, samples)

    const [failed] = bench.of('load.failed')
    expect(failed?.message).toMatch(
      /^m \(70\.0 GB\) was not in memory after (\d+) s of \1 s \(limits\.load_timeout_min\)$/,
    )
    const { outcome } = bench.settled()[0] as { outcome: { end: string; message?: string } }
    expect(outcome.end).toBe('failed')
    expect(outcome.message).toContain('limits.load_timeout_min')
    bench.gateway.loads[0]?.fail('too late')
    await bench.clock.advance(1_000)
    bench.expectIdle()
  })
})

describe('no limit of the runtime', () => {
  test('BL-T06 330 s before the head, then 330 s between two tokens, under limits that allow it', async () => {
    const bench = host({ a: resident() }, { limits: { streamIdleTimeoutMs: 400_000 } })
    await bench.ready()
    bench.submit()
    await bench.clock.advance(330_000)
    const [running] = bench.gateway.running
    running?.start()
    if (running !== undefined) running.flow.lastByteAt = bench.clock.now()
    await bench.clock.advance(330_000)
    expect(running?.signal.aborted).toBe(false)
    running?.finish()

    expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed' } }])
  })

  test('BL-T07 a token a second for 900 s is healthy', async () => {
    const bench = host({ a: resident() })
    await bench.ready()
    bench.submit()
    const [running] = bench.gateway.running
    running?.start()
    for (let second = 0; second < 900; second += 1) {
      await bench.clock.advance(1_000)
      if (running !== undefined) Object.assign(running.flow, { lastByteAt: bench.clock.now(), bytes: second })
    }
    expect(running?.signal.aborted).toBe(false)
    running?.finish()

    expect(bench.settled()).toMatchObject([{ outcome: { end: 'completed', serviceMs: 900_000 } }])
    bench.expectIdle()
  })

  test('BL-T07 a total limit that is configured ends with its name and frees the slot', () =>
    quietly(
      [hot('llamacpp', { models: [slowModel()], answerTokens: 1_000, slots: 1 })],
      { limits: { totalTimeoutMs: 400 } },
      async (bench) => {
        for (const [index, shape] of [openAiChat, ollamaChat].entries()) {
          const body = await readSome(await ask(bench.url, shape), () => false)

          expect(shape.text(body)).toMatch(/^tok1\.\w+ tok2/)
          expect(JSON.stringify(shape.records(body).at(-1))).toContain('limits.total_timeout')
          expect((await settledRecord(bench, index + 1)).outcome).toMatchObject({
            end: 'incomplete',
            code: 'total_cap',
          })
          await until(() => bench.fakes[0]?.running() === 0)
          await bench.idle(1_000)
        }
        bench.fakes[0]?.faults.add({ type: 'freeze' })
        const late = await ask(bench.url, openAiChat)
        expect(late.status).toBe(504)
        expect(await late.text()).toContain('limits.total_timeout')
        expect((await settledRecord(bench, 3)).outcome).toMatchObject({ end: 'failed', code: 'total_cap' })
        // It says nothing about the node, and nobody else was asked.
        expect(bench.of('attempt.failed')).toEqual([])
        expect(asked(bench.fakes[0] as never)).toHaveLength(3)
        await bench.idle(1_000)
      },
    ))
})
