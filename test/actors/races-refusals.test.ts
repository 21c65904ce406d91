import { expect, test } from 'bun:test'
import type { RouterError } from '../../src/domain/errors'
import { learnFrom } from '../../src/learning/learn'
import { createSamples } from '../../src/learning/service-times'
import { seededRandom } from '../../src/sim/seeded-random'
import { host, resident } from '../support/host'

const SEED = Number(process.env.RACES_SEED ?? 20_261_130)
const WAITING = 10

interface Node {
  readonly slots: number
  /** Mean time of an answer, and how far one may lie from it. */
  readonly serviceMs: number
  readonly spread: number
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

/**
 * Keeps the waiting room full and asks in vain, again and again: for each refusal the real time until a place was free
 * in the room, divided by what Retry-After said.
 */
const ratiosOf = async (nodes: Readonly<Record<string, Node>>, refusals: number, limits: object): Promise<number[]> => {
  const random = seededRandom(SEED)
  const samples = createSamples()
  const reports = Object.fromEntries(Object.entries(nodes).map(([name, { slots }]) => [name, resident('m', slots)]))
  const fleet = host(reports, { samples, limits })
  const { clock, gateway, facts, submit } = fleet
  const learner = learnFrom(samples)
  let heard = 0
  gateway.onForward = (running) => {
    const { serviceMs, spread } = nodes[running.call.node.name] as Node
    clock.setTimeout(
      () => {
        running.start()
        running.finish()
      },
      serviceMs * (1 + spread * (2 * random.next() - 1)),
    )
  }
  await fleet.ready()

  const isFull = (): boolean => {
    const { inFlight, waiting } = fleet.fleet.overview()
    return 'concurrent' in limits ? inFlight + waiting >= Number(limits.concurrent) : waiting >= WAITING
  }
  const open: { readonly at: number; readonly seconds: number }[] = []
  const ratios: number[] = []
  // What is refused leaves at once, so one that fits refills the room: as clients do that come all the time.
  while (ratios.length < refusals) {
    for (; heard < facts.length; heard++) learner.hear(facts[heard] as (typeof facts)[number])
    if (!isFull()) {
      for (const { at, seconds } of open.splice(0)) ratios.push((clock.now() - at) / 1_000 / seconds)
      submit()
      await clock.advance(0)
      continue
    }
    if (random.next() < 0.02) {
      const answer = (await submit().outcome) as { readonly error: RouterError }
      expect(answer.error.code).toBe('queue_full')
      open.push({ at: clock.now(), seconds: answer.error.details.retryAfterSeconds ?? 0 })
    }
    await clock.advance(100)
  }
  return ratios
}

test.each([
  ['one slow node', { a: { slots: 1, serviceMs: 20_000, spread: 0 } }],
  ['one node with five slots', { a: { slots: 5, serviceMs: 60_000, spread: 0.3 } }],
  [
    'three unlike nodes',
    {
      a: { slots: 1, serviceMs: 12_000, spread: 0.2 },
      b: { slots: 2, serviceMs: 40_000, spread: 0.2 },
      c: { slots: 1, serviceMs: 90_000, spread: 0.2 },
    },
  ],
] as [string, Record<string, Node>][])(
  `BL-Q05 over 220 refusals the real wait is near Retry-After: %s (seed ${SEED})`,
  async (_name, nodes) => {
    const ratios = await ratiosOf(nodes, 220, { waitingPerModel: WAITING })

    expect(Number.isFinite(Math.max(...ratios))).toBe(true)
    expect(median(ratios)).toBeGreaterThanOrEqual(0.5)
    expect(median(ratios)).toBeLessThanOrEqual(2)
  },
  20_000,
)

test(`BL-Q05 the same for limits.concurrent (seed ${SEED})`, async () => {
  const ratios = await ratiosOf({ a: { slots: 4, serviceMs: 40_000, spread: 0.2 } }, 220, { concurrent: 6 })

  expect(Number.isFinite(Math.max(...ratios))).toBe(true)
  expect(median(ratios)).toBeGreaterThanOrEqual(0.5)
  expect(median(ratios)).toBeLessThanOrEqual(2)
}, 20_000)

test('BL-Q05 a node that may not be asked shortens no Retry-After', async () => {
  const samples = createSamples()
  samples.addService({ node: 'a', model: 'm', durationMs: 50_000, firstByteMs: 1 })
  const fleet = host({ a: resident(), b: resident() }, { samples, limits: { waitingPerModel: 1 } })
  await fleet.ready()
  fleet.fleet.setAdmission('b', 'paused')
  fleet.submit()
  fleet.submit()
  await fleet.clock.advance(10_000)

  const { error } = (await fleet.submit().outcome) as { readonly error: RouterError }

  expect(error.details.retryAfterSeconds).toBe(40)
})
