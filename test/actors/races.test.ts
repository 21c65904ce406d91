import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../src/sim/seeded-random'
import { host, resident } from '../support/host'

const REPEATS = 200
const SEED = Number(process.env.RACES_SEED ?? 20_261_130)
/** Prefill of a slow node: nothing comes back for so long, in ms. */
const PREFILL_MS = 10_000

type Fleet = ReturnType<typeof host>

const fleetOf = (count: number): Fleet =>
  host(Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, resident()])), {
    // Polls are not what this is about, and they are most of what costs time.
    health: { pollEveryMs: 120_000 },
  })

const shuffled = <T>(items: readonly T[], next: () => number): T[] => {
  const rest = [...items]
  for (let at = rest.length - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1))
    ;[rest[at], rest[other]] = [rest[other] as T, rest[at] as T]
  }
  return rest
}

/** How many requests each node has, most first. */
const spread = ({ gateway }: Fleet): number[] => {
  const counts = new Map<string, number>()
  for (const { call } of gateway.running) counts.set(call.node.name, (counts.get(call.node.name) ?? 0) + 1)
  return [...counts.values()].sort((a, b) => b - a)
}

/** One wave: twice as many at once as there are nodes, in random order over two milliseconds; then all are answered. */
const wave = async (fleet: Fleet, count: number, next: () => number): Promise<number[]> => {
  const { submit, clock, gateway } = fleet
  for (const at of shuffled([...Array(count * 2).keys()], next)) {
    submit({ session: `s${at}`, arrivedAt: clock.now() })
    if (next() < 0.1) await clock.advance(1)
  }
  await clock.advance(PREFILL_MS)
  const seen = spread(fleet)
  while (gateway.running.length > 0) {
    for (const one of shuffled(gateway.running, next)) {
      one.start()
      one.finish()
    }
    await clock.advance(0)
  }
  return seen
}

describe.each([4, 16])('BL-R01 %i idle, equal, slow nodes with one slot each', (count) => {
  test(`get one of the first requests each, in ${REPEATS} waves of any order (seed ${SEED})`, async () => {
    const random = seededRandom(SEED + count)
    const fleet = fleetOf(count)
    await fleet.ready()

    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const seen = await wave(fleet, count, random.next)
      expect({ repeat, seed: SEED, seen }).toEqual({ repeat, seed: SEED, seen: Array(count).fill(1) })
    }
    fleet.expectIdle()
  }, 20_000)

  test('collide when choosing does not reserve, so that the reservation is what keeps them apart', async () => {
    const random = seededRandom(SEED + count)
    const fleet = fleetOf(count)
    const { ledger } = fleet.fleet.shared.desk
    ledger.reserve = () => {}
    await fleet.ready()

    expect(Math.max(...(await wave(fleet, count, random.next)))).toBeGreaterThan(1)

    ledger.chosen = () => {}
    expect(await wave(fleet, count, random.next)).toEqual([count * 2])
  })
})

test('BL-R02 one at a time, 400 sessions are spread evenly over four equal nodes, the same way each time', async () => {
  const run = async (): Promise<string[]> => {
    const { submit, clock, gateway, ready } = fleetOf(4)
    await ready()
    const nodes: string[] = []
    for (let at = 0; at < 400; at++) {
      submit({ session: `s${at}` })
      await clock.advance(0)
      const [one] = gateway.running
      nodes.push(one?.call.node.name ?? '')
      one?.start()
      one?.finish()
      await clock.advance(5)
    }
    return nodes
  }
  const [first, second] = [await run(), await run()]

  for (const node of ['n0', 'n1', 'n2', 'n3']) {
    const share = first.filter((one) => one === node).length / first.length
    expect(share).toBeGreaterThanOrEqual(0.15)
    expect(share).toBeLessThanOrEqual(0.35)
  }
  expect(second).toEqual(first)
})

test('BL-R03 new sessions go to the idle node until its load is that of the busy one', async () => {
  const fleet = host({ a: resident('m', 64), b: resident('m', 64) })
  const { submit, clock, gateway, ready } = fleet
  await ready()
  for (let at = 0; at < 20; at++) submit({ session: `old${at}`, pin: 'a' })
  await clock.advance(0)

  const order: string[] = []
  gateway.onForward = ({ call }) => order.push(call.node.name)
  for (let at = 0; at < 50; at++) submit({ session: `new${at}` })
  await clock.advance(0)

  expect(order.slice(0, 20)).toEqual(Array(20).fill('b'))
  expect(spread(fleet)).toEqual([35, 35])
})

describe('BL-R06 one slow scrape', () => {
  const names = Array.from({ length: 20 }, (_, index) => `n${index}`)
  const slow = 'n0'
  const pollEveryMs = 2_000

  /** `n0` answers its polls after so many ms. */
  const fleetWith = async (slowMs: number) => {
    const fleet = host(Object.fromEntries(names.map((name) => [name, resident()])), {
      health: { pollEveryMs, pollTimeoutMs: 6_000 },
    })
    const report = fleet.gateway.report.bind(fleet.gateway)
    fleet.gateway.report = (node, signal) =>
      node.name !== slow
        ? report(node, signal)
        : new Promise((resolve, reject) => {
            fleet.clock.setTimeout(() => report(node, signal).then(resolve, reject), slowMs)
          })
    await fleet.clock.advance(30_000)
    return fleet
  }

  test('leaves what is known of the other nineteen fresh, at every decision', async () => {
    const { fleet, clock, submit, gateway } = await fleetWith(5_000)

    let oldest = 0
    for (let at = 0; at < 100; at++) {
      await clock.advance(137)
      submit()
      await clock.advance(0)
      for (const node of fleet.nodes())
        if (node.name !== slow) oldest = Math.max(oldest, clock.now() - (node.lastReportAt ?? 0))
      gateway.running[0]?.start()
      gateway.running[0]?.finish()
    }

    expect(oldest).toBeLessThanOrEqual(pollEveryMs)
  })

  test('marks its node stale: behind its equals, and not dropped', async () => {
    const { fleet, clock, submit, gateway, of } = await fleetWith(5_000)

    for (let at = 0; at < 20; at++) submit()
    await clock.advance(0)

    expect(gateway.running.map(({ call }) => call.node.name).at(-1)).toBe(slow)
    expect(fleet.nodes().find(({ name }) => name === slow)).toMatchObject({ health: 'online', state: 'online' })
    const last = of('request.placed').at(-1)
    expect(last?.verdicts[0]).toMatchObject({ node: slow, terms: { report: 'stale' } })
  })

  test('that is not answered at all makes its node suspect first, offline after some more', async () => {
    const { clock, of } = await fleetWith(60_000)

    await clock.advance(30_000)

    const told = of('node.health').filter(({ node }) => node === slow)
    expect(told.map(({ health }) => health)).toEqual(['online', 'suspect', 'offline'])
    expect(of('node.health').filter(({ node, health }) => node !== slow && health !== 'online')).toEqual([])
  })
})
