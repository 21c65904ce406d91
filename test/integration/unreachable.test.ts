import { expect, test } from 'bun:test'
import { until } from '../support/fakes'
import { ask, asked, pairs, quietly, settledRecord } from './clients'

const POLLS = { pollEveryMs: 100 }

test.each(pairs)(
  'no request fails while the only engine is restarted, nor does the first one: %s on %s',
  (_shape, _kind, shape, kind) =>
    quietly([{ kind, resident: ['m'] }], { policy: { retries: 0 }, health: POLLS }, async (bench) => {
      const [fake] = bench.fakes
      await (await ask(bench.url, shape)).text()
      const comeBack = fake?.faults.add({ type: 'refuse' })

      const first = ask(bench.url, shape)
      await until(() => bench.of('attempt.failed').length > 0)
      const second = ask(bench.url, shape)
      await until(() => bench.router.fleet.overview().held === 2)
      comeBack?.()

      for (const reply of [await first, await second]) {
        expect(reply.status).toBe(200)
        expect(shape.isWhole(await reply.text())).toBe(true)
      }
      expect(asked(fake as never)).toHaveLength(3)
      const { failures, phases, outcome } = await settledRecord(bench, 2)
      expect(failures).toMatchObject([{ node: 'a', class: 'connect', retried: true }])
      expect(phases.map(({ name }) => name)).toContain('held')
      expect(outcome).toMatchObject({ end: 'completed', node: 'a', retries: 1 })
      await bench.idle()
    }),
)

test('a llama-server that answers already and still loads its model is waited for like one that does not answer', () =>
  quietly([{ kind: 'llamacpp', resident: ['m'] }], { policy: { retries: 0 }, health: POLLS }, async (bench) => {
    const [fake] = bench.fakes
    const isReady = fake?.faults.add({ type: 'status', status: 503, message: 'Loading model' })

    const pending = Promise.all(Array.from({ length: 8 }, () => bench.chat()))
    await until(() => bench.router.fleet.overview().held === 8)
    isReady?.()

    expect((await pending).map(({ status }) => status)).toEqual(Array(8).fill(200))
    const { failures } = await settledRecord(bench)
    // Once, or once more after a poll that the server answered while it was loading; then it is left alone for a while.
    expect(failures.length).toBeWithin(1, 3)
    for (const failure of failures) expect(failure).toMatchObject({ class: 'starting', status: 503, retried: true })
    // Nobody did anything wrong.
    expect(bench.of('node.breaker')).toEqual([])
    await bench.idle()
  }))

test('an engine that does not come back: the answer says after how long, and what had happened there', () =>
  quietly(
    [{ kind: 'llamacpp', resident: ['m'] }],
    { policy: { holdTimeoutMs: 400 }, health: POLLS },
    async ({ fakes, chat, json, of, idle }) => {
      fakes[0]?.faults.add({ type: 'refuse' })
      const from = performance.now()

      const reply = await chat()

      expect(performance.now() - from).toBeGreaterThan(350)
      expect(reply.status).toBe(503)
      expect(reply.headers.get('retry-after')).toBe('5')
      expect(reply.headers.get('x-fleet-why')).toBe('held')
      const { error } = (await reply.json()) as { error: { message: string } }
      expect(error.message).toMatch(
        /^No node could take 'm' within 0 s \(policy\.hold_timeout\)\. It had failed on a: 127\.0\.0\.1:\d+ refuses connections/,
      )
      const { request } = of('request.settled')[0] ?? {}
      expect(await json(`/api/v1/requests/${request}`)).toMatchObject({
        failures: [{ node: 'a', class: 'connect' }],
        outcome: { end: 'expired', status: 503 },
      })
      await idle()
    },
  ))
