import { describe, expect, test } from 'bun:test'
import { COLD, idOf, runAll, stateOf } from '../support/crashes'
import { host, resident } from '../support/host'

const EARLY = { use: 'least-connections' }
const bound = ({ fleet }: ReturnType<typeof host>): [string, number][] =>
  fleet.queues().map(({ node, waiting }) => [node, waiting])

/** Notes the most that ran at once on each node, and in which order. */
const observe = ({ gateway }: ReturnType<typeof host>) => {
  const most: Record<string, number> = {}
  const order: string[] = []
  gateway.onForward = ({ call }) => {
    const now = gateway.running.filter((other) => other.call.node.name === call.node.name).length
    most[call.node.name] = Math.max(most[call.node.name] ?? 0, now)
    order.push(call.request)
  }
  return { most, order }
}

describe('bound early,', () => {
  test('requests join the queue of one node and model, and start in their order as slots are free', async () => {
    const h = host({ a: resident('m', 2) }, { policy: EARLY })
    await h.ready()
    const { most, order } = observe(h)
    const requests = Array.from({ length: 6 }, () => h.submit())
    await h.clock.advance(0)

    expect(requests.map((request) => stateOf(h, idOf(request)))).toEqual([
      'starting',
      'starting',
      ...Array.from({ length: 4 }, () => 'queued'),
    ])
    expect(bound(h)).toEqual([['a', 4]])
    expect(h.fleet.waiters().map(({ kind, node, position }) => [kind, node, position])).toEqual([
      ['bound', 'a', 1],
      ['bound', 'a', 2],
      ['bound', 'a', 3],
      ['bound', 'a', 4],
    ])
    await runAll(h)
    expect(order).toEqual(requests.map(({ job }) => job.id))
    expect(most).toEqual({ a: 2 })
    h.expectIdle()
  })

  test('they spread over the nodes and none is above its slots, whatever ends when', async () => {
    const h = host({ a: resident('m', 1), b: resident('m', 3) }, { policy: EARLY })
    await h.ready()
    const { most } = observe(h)
    const outcomes = Array.from({ length: 40 }, () => h.submit().outcome)
    await h.clock.advance(0)
    await runAll(h)
    for (const outcome of outcomes) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(most).toEqual({ a: 1, b: 3 })
    h.expectIdle()
  })

  test('a full queue refuses at once with `queue_full` and a time, and is not asked again and again', async () => {
    const h = host({ a: resident('m', 1) }, { policy: EARLY, limits: { queuePerNode: 2 } })
    await h.ready()
    const taken = [h.submit(), h.submit(), h.submit()]
    await h.clock.advance(0)
    const before = h.of('request.placed').length

    const late = h.submit()
    const error = await late.outcome

    expect(error).toMatchObject({
      error: { code: 'queue_full', details: { nodes: [{ node: 'a', reason: 'queue_full' }] } },
    })
    expect(
      (error as { error: { details: { retryAfterSeconds: number } } }).error.details.retryAfterSeconds,
    ).toBeGreaterThan(0)
    expect(h.of('request.placed').length - before).toBe(1)
    expect(bound(h)).toEqual([['a', 2]])
    await runAll(h)
    for (const { outcome } of taken) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })

  test('a node whose queue is full is passed over for one whose queue is not', async () => {
    const h = host({ a: resident('m', 1), b: resident('m', 1) }, { policy: EARLY, limits: { queuePerNode: 1 } })
    await h.ready()
    for (let i = 0; i < 4; i++) h.submit()
    await h.clock.advance(0)
    expect(bound(h)).toEqual([
      ['a', 1],
      ['b', 1],
    ])
    expect(await h.submit().outcome).toMatchObject({ error: { code: 'queue_full' } })
    await runAll(h)
    h.expectIdle()
  })

  test('a client that leaves its queue leaves nothing there, and its place goes to the next', async () => {
    const h = host({ a: resident('m', 1) }, { policy: EARLY })
    await h.ready()
    const { order } = observe(h)
    const [first, second, third] = [h.submit(), h.submit(), h.submit()]
    await h.clock.advance(0)
    second.leave()
    await h.clock.advance(0)
    expect(bound(h)).toEqual([['a', 1]])
    await runAll(h)

    expect(order).toEqual([first.job.id, third.job.id])
    expect(await second.outcome).toMatchObject({ error: { code: 'client_disconnected' } })
    h.expectIdle()
  })

  test.each([
    ['is drained', (h: ReturnType<typeof host>) => void h.fleet.setAdmission('a', 'draining')],
    ['is paused', (h: ReturnType<typeof host>) => void h.fleet.setAdmission('a', 'paused')],
    ['goes offline', (h: ReturnType<typeof host>) => void h.gateway.reports.set('a', new Error('refused'))],
    ['leaves', (h: ReturnType<typeof host>) => h.fleet.removeNode('a')],
  ])('whoever waits at a node that %s is placed again, and what runs there ends there', async (_, happen) => {
    const h = host({ a: resident('m', 1), b: resident('m', 1) }, { policy: EARLY })
    await h.ready()
    const requests = Array.from({ length: 6 }, () => h.submit())
    await h.clock.advance(0)

    happen(h)
    await h.clock.advance(30_000)

    expect(bound(h).filter(([node]) => node === 'a')).toEqual(
      h.fleet.nodes().some(({ name }) => name === 'a') ? [['a', 0]] : [],
    )
    expect(h.gateway.running.map(({ call }) => call.node.name)).toContain('a')
    await runAll(h)
    for (const { outcome } of requests) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })
})

test('bound to a model that is not in memory, the first one has it loaded and the others follow in order', async () => {
  const h = host({ a: COLD }, { policy: EARLY, describe: () => ({ kind: 'ollama' }) })
  await h.ready()
  const { order } = observe(h)
  const requests = ['x', 'x', 'x'].map((asked) => h.submit({ asked, models: [asked] }))
  await h.clock.advance(0)
  expect(requests.map((request) => stateOf(h, idOf(request)))).toEqual(['loading', 'queued', 'queued'])

  h.gateway.loads[0]?.fail('no memory')
  await h.clock.advance(5_000)
  expect(await requests[0]?.outcome).toMatchObject({ error: { code: 'upstream_failed' } })
  expect(h.gateway.loads).toHaveLength(2)
  h.gateway.reports.set('a', { ...COLD, resident: [{ name: 'x', state: 'ready', memoryGb: 6 }] })
  h.gateway.loads[1]?.done()
  await h.clock.advance(10)
  await runAll(h)

  expect(order).toEqual(requests.slice(1).map(({ job }) => job.id))
  h.expectIdle()
})

describe('early and late in one fleet:', () => {
  test('slots are never exceeded, nor a cap over models, and everybody is served', async () => {
    const both = { models: [{ name: 'm' }, { name: 'n' }], canLoad: false, canUnload: false }
    const report = {
      ...both,
      resident: ['m', 'n'].map((name) => ({ name, state: 'ready' as const, slots: 2 })),
    }
    const h = host(
      { a: report, b: report },
      { policy: EARLY, describe: (name) => (name === 'a' ? { maxConcurrency: 2 } : {}) },
    )
    await h.ready()
    const { most } = observe(h)
    const outcomes: Promise<unknown>[] = []
    for (let round = 0; round < 12; round++) {
      const policy = round % 2 === 0 ? 'residency' : EARLY.use
      for (const asked of ['m', 'n', 'm']) outcomes.push(h.submit({ asked, models: [asked], policy }).outcome)
      await h.clock.advance(0)
      h.fleet.shared.desk.ledger.check()
      const [running] = h.gateway.running
      running?.start()
      running?.finish()
      await h.clock.advance(0)
    }
    await runAll(h)
    for (const outcome of outcomes) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(most.a).toBe(2)
    expect(most.b).toBeLessThanOrEqual(4)
    h.expectIdle()
  })
})
