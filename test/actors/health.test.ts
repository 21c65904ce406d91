import { describe, expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host, noSamples, resident } from '../support/host'

const MINUTE = 60_000
const broken = { class: 'status', message: 'the node answered 500', status: 500 } as const

/** Has `m` on disk only and answers a load at once. */
const cold = (more: Partial<NodeReport> = {}): NodeReport => ({
  models: [{ name: 'm', sizeGb: 5 }],
  resident: [],
  canLoad: true,
  canUnload: true,
  memoryGb: 24,
  ...more,
})

type Fleet = ReturnType<typeof host>

/** Answers every request of these nodes after so many ms; `fails` refuses it at once. */
const behave = ({ gateway, clock }: Fleet, how: Record<string, number | 'fails' | 'hangs'>): void => {
  gateway.onForward = (running) => {
    const way = how[running.call.node.name] ?? 'hangs'
    if (way === 'hangs') return
    clock.setTimeout(
      () => {
        if (running.signal.aborted) return
        if (way === 'fails') running.fail(broken)
        else {
          running.start()
          running.finish()
        }
      },
      way === 'fails' ? 0 : way,
    )
  }
}

/** Fails requests until the breaker of the node opens. */
const openBreaker = async (fleet: Fleet, node: string): Promise<void> => {
  for (let at = 0; at < 5; at++) {
    fleet.submit({ pin: node })
    await fleet.clock.advance(0)
    fleet.gateway.running.find(({ call }) => call.node.name === node)?.fail(broken)
    await fleet.clock.advance(0)
  }
}

const nodeOf = ({ fleet }: Fleet, name: string) => fleet.nodes().find((node) => node.name === name)

test('BL-H02 a node whose requests fail is circuit_open everywhere, with cause, since and next try', async () => {
  const fleet = host({ a: resident() })
  await fleet.ready()
  const since = fleet.clock.now()
  await openBreaker(fleet, 'a')

  expect(nodeOf(fleet, 'a')).toMatchObject({
    health: 'online',
    state: 'circuit_open',
    breaker: 'open',
    breakerReason: 'the node answered 500',
    breakerSince: since,
    breakerRetryAt: since + 5_000,
  })
  expect(fleet.fleet.overview().healthyNodes).toBe(0)

  // The try fails: open since the first time, the next try from now on and later than before.
  fleet.submit()
  await fleet.clock.advance(5_000)
  fleet.gateway.running[0]?.fail(broken)
  await fleet.clock.advance(0)

  expect(nodeOf(fleet, 'a')).toMatchObject({ breakerSince: since, breakerRetryAt: since + 5_000 + 10_000 })
  expect(fleet.of('node.breaker').map(({ breaker, retryAt }) => [breaker, retryAt])).toEqual([
    ['open', since + 5_000],
    ['half_open', undefined],
    ['open', since + 15_000],
  ])
})

test('BL-H08 a node that lives and fails each answer is out after at most five, and comes back through one canary', async () => {
  const fleet = host({ a: resident('m', 4), b: resident('m', 64) })
  await fleet.ready()
  behave(fleet, { a: 'fails', b: 100 })
  const sent: string[] = []
  const forward = fleet.gateway.onForward
  fleet.gateway.onForward = (running) => {
    sent.push(running.call.node.name)
    forward(running)
  }

  for (let at = 0; at < 40; at++) {
    fleet.submit()
    await fleet.clock.advance(50)
  }
  expect(sent.filter((node) => node === 'a')).toHaveLength(5)
  expect(nodeOf(fleet, 'a')).toMatchObject({ health: 'online', state: 'circuit_open' })

  // It works again: one request at a time until one has ended well, then its share.
  behave(fleet, { a: 1_000, b: 100 })
  await fleet.clock.advance(3_200)
  for (let at = 0; at < 8; at++) fleet.submit()
  await fleet.clock.advance(0)
  expect(fleet.gateway.running.filter(({ call }) => call.node.name === 'a')).toHaveLength(1)
  await fleet.clock.advance(1_000)
  expect(nodeOf(fleet, 'a')).toMatchObject({ state: 'online', breaker: 'closed' })
  for (let at = 0; at < 8; at++) fleet.submit()
  await fleet.clock.advance(0)
  expect(fleet.gateway.running.filter(({ call }) => call.node.name === 'a')).toHaveLength(4)

  await fleet.clock.advance(5_000)
  expect(fleet.settled().every(({ outcome }) => outcome.end === 'completed')).toBe(true)
  fleet.expectIdle()
})

test('BL-H03 polls never chat, load, unload or restart anything, for as long as they go on', async () => {
  const embedOnly: NodeReport = {
    models: [{ name: 'nomic-embed', capabilities: ['embedding'] }],
    resident: [{ name: 'nomic-embed', state: 'ready' }],
    canLoad: true,
    canUnload: true,
  }
  const fleet = host({ a: embedOnly })
  let unloads = 0
  fleet.gateway.unload = () => {
    unloads += 1
    return Promise.resolve()
  }
  let forwards = 0
  fleet.gateway.onForward = () => {
    forwards += 1
  }

  await fleet.clock.advance(10 * MINUTE)

  expect(fleet.gateway.polls).toBeGreaterThan(250)
  expect([forwards, unloads, fleet.gateway.loads.length]).toEqual([0, 0, 0])
  expect(nodeOf(fleet, 'a')).toMatchObject({ state: 'online', resident: [{ name: 'nomic-embed' }] })
})

test('BL-H03 a 4xx of the node is proof of life: it ends the doubt and counts as no failure', async () => {
  const fleet = host({ a: resident('m', 8) })
  await fleet.ready()
  fleet.gateway.reports.set('a', new Error('connection refused'))
  await fleet.clock.advance(2_000)
  expect(nodeOf(fleet, 'a')?.health).toBe('suspect')

  for (let at = 0; at < 8; at++) {
    fleet.submit()
    await fleet.clock.advance(0)
    fleet.gateway.running[0]?.reject(400)
    await fleet.clock.advance(0)
  }

  expect(nodeOf(fleet, 'a')).toMatchObject({ health: 'online', breaker: 'closed' })
  expect(fleet.of('attempt.failed')).toEqual([])
})

test('BL-H04 a saturated node whose polls go unanswered is busy, not down, while its streams flow', async () => {
  const fleet = host({ a: resident('m', 2) })
  await fleet.ready()
  fleet.submit()
  fleet.submit()
  fleet.submit()
  await fleet.clock.advance(0)
  for (const { start } of fleet.gateway.running) start()
  fleet.gateway.reports.set('a', 'hang')

  for (let second = 0; second < 90; second++) {
    for (const { flow } of fleet.gateway.running) {
      flow.bytes += 100
      flow.lastByteAt = fleet.clock.now()
    }
    await fleet.clock.advance(1_000)
    const view = nodeOf(fleet, 'a')
    expect(view).toMatchObject({ health: 'online', queues: [{ inFlight: 2, slots: 2 }] })
  }
  expect(fleet.fleet.waiters()).toMatchObject([{ kind: 'waiting', reason: 'busy' }])

  // No stream and no answer to polls: now it is down.
  for (const { finish } of [...fleet.gateway.running]) finish()
  await fleet.clock.advance(0)
  for (const { start, finish } of [...fleet.gateway.running]) {
    start()
    finish()
  }
  await fleet.clock.advance(MINUTE)
  expect(nodeOf(fleet, 'a')?.health).toBe('offline')
})

describe('BL-H12 the list of models is fine and every generation hangs', () => {
  const report = { models: [{ name: 'm' }], resident: [{ name: 'm', state: 'ready' as const, slots: 8 }] }
  const wedged: NodeReport = { ...report, canLoad: false, canUnload: false }

  /** 28 requests over ten minutes. */
  const tenMinutes = async (fleet: Fleet): Promise<void> => {
    for (let at = 0; at < 28; at++) {
      fleet.submit()
      await fleet.clock.advance((10 * MINUTE) / 28)
      for (const load of fleet.gateway.loads.splice(0)) {
        fleet.gateway.reports.set('b', cold({ resident: [{ name: 'm', state: 'ready', slots: 4 }] }))
        load.done()
      }
    }
  }

  test('new work goes to the cold node, the stuck ones follow, one alert tells of it', async () => {
    const fleet = host({ a: wedged, b: cold() })
    await fleet.ready()
    behave(fleet, { a: 'hangs', b: 1_000 })

    await tenMinutes(fleet)
    await fleet.clock.advance(5 * MINUTE)

    const ends = fleet.settled().map(({ outcome }) => outcome.end)
    expect(ends).toEqual(Array(28).fill('completed'))
    // Nobody stood for much longer than it takes to see that three stand still.
    const slowest = Math.max(...fleet.settled().map(({ at, arrivedAt }) => at - arrivedAt))
    expect(slowest).toBeLessThan(3 * MINUTE)
    const alerts = fleet.of('node.health').filter(({ node, health }) => node === 'a' && health === 'suspect')
    expect(alerts[0]).toMatchObject({ reason: 'no_progress: 3 requests stand without a first byte' })
    expect(alerts.length).toBeLessThanOrEqual(4)
    fleet.expectIdle()
  })

  test('suspect stays suspect although its polls go well, and one that stands is then enough', async () => {
    const fleet = host({ a: wedged, b: resident('m', 8) })
    await fleet.ready()
    behave(fleet, { a: 'hangs', b: 1_000 })
    for (let at = 0; at < 3; at++) fleet.submit({ pin: 'a' })

    await fleet.clock.advance(MINUTE + 10)
    expect(nodeOf(fleet, 'a')?.health).toBe('suspect')
    await fleet.clock.advance(MINUTE / 2)
    expect(nodeOf(fleet, 'a')?.health).toBe('suspect')

    await fleet.clock.advance(MINUTE)
    for (const { leave } of [...fleet.gateway.running]) leave()
    await fleet.clock.advance(MINUTE)
    expect(nodeOf(fleet, 'a')?.health).toBe('online')
    fleet.submit()
    fleet.submit()
    await fleet.clock.advance(MINUTE + 2_000)
    expect(nodeOf(fleet, 'a')?.health).toBe('suspect')
    expect(fleet.of('attempt.failed')).toMatchObject([{ node: 'a', retried: true }])
    expect(fleet.settled().filter(({ outcome }) => outcome.end === 'completed')).toHaveLength(2)
  })

  test('without another node they stay where they are', async () => {
    const fleet = host({ a: wedged })
    await fleet.ready()
    for (let at = 0; at < 4; at++) fleet.submit()

    await fleet.clock.advance(2 * MINUTE)

    expect(nodeOf(fleet, 'a')?.health).toBe('suspect')
    expect(fleet.gateway.running).toHaveLength(4)
    expect(fleet.of('attempt.failed')).toEqual([])
  })

  test('a node that usually needs longer is given twice that', async () => {
    const usual = { meanMs: 2 * MINUTE, samples: 30 }
    const fleet = host(
      { a: wedged },
      {
        samples: { ...noSamples(), service: () => usual },
      },
    )
    await fleet.ready()
    for (let at = 0; at < 4; at++) fleet.submit()

    await fleet.clock.advance(3.9 * MINUTE)
    expect(nodeOf(fleet, 'a')?.health).toBe('online')
    await fleet.clock.advance(0.2 * MINUTE)
    expect(nodeOf(fleet, 'a')?.health).toBe('suspect')
  })
})

test('BL-Q08 with every breaker open a request is held and becomes the try of the first that may be tried', async () => {
  const fleet = host({ a: resident(), b: resident() })
  await fleet.ready()
  await openBreaker(fleet, 'a')
  await fleet.clock.advance(1_000)
  await openBreaker(fleet, 'b')
  expect(fleet.fleet.nodes().map(({ state }) => state)).toEqual(['circuit_open', 'circuit_open'])

  const { outcome } = fleet.submit()
  await fleet.clock.advance(0)
  expect(fleet.fleet.waiters()).toMatchObject([{ kind: 'held', reason: 'breaker_open' }])
  behave(fleet, { a: 100, b: 100 })
  await fleet.clock.advance(4_100)

  expect(await outcome).toMatchObject({ reply: { status: 200 } })
  expect(fleet.settled().at(-1)).toMatchObject({ outcome: { end: 'completed', node: 'a' } })
  expect(fleet.fleet.nodes().map(({ state }) => state)).toEqual(['online', 'circuit_open'])
  fleet.expectIdle()
})

test('BL-O06 a node that swallows every packet is offline in time, its requests are held, and one poll brings it back', async () => {
  const policy = { holdTimeoutMs: 20 * MINUTE }
  const fleet = host(
    { a: resident() },
    { policy, health: { pollEveryMs: 2_000, pollTimeoutMs: 5_000, offlineAfter: 3 } },
  )
  await fleet.ready()
  const seen: string[] = []
  const note = () => void seen.push(nodeOf(fleet, 'a')?.health ?? 'gone')

  const asleepAt = fleet.clock.now()
  fleet.gateway.reports.set('a', 'hang')
  const caught = fleet.submit()
  await fleet.clock.advance(3_000)
  fleet.gateway.running[0]?.fail({ class: 'connect_timeout', message: 'no connection within 3 s' })
  await fleet.clock.advance(3 * (2_000 + 5_000) - 3_000)
  note()
  const offlineAt = fleet.of('node.health').findLast(({ health }) => health === 'offline')?.at ?? 0
  const held = fleet.submit()
  await fleet.clock.advance(10 * MINUTE - (fleet.clock.now() - asleepAt))
  note()

  expect(seen).toEqual(['offline', 'offline'])
  expect(offlineAt - asleepAt).toBeLessThanOrEqual(3 * (2_000 + 5_000))
  expect(fleet.fleet.overview()).toMatchObject({ inFlight: 0, held: 2 })
  expect(fleet.settled()).toEqual([])

  fleet.gateway.reports.set('a', resident())
  behave(fleet, { a: 500 })
  await fleet.clock.advance(2_000 + 5_000)
  expect(nodeOf(fleet, 'a')?.health).toBe('online')
  await fleet.clock.advance(1_000)
  for (const { job } of [caught, held])
    expect(fleet.settled().find(({ request }) => request === job.id)?.outcome).toMatchObject({ end: 'completed' })
  fleet.expectIdle()
})
