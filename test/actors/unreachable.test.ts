import { describe, expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { NodeFault } from '../../src/ports/node-gateway'
import { host, resident } from '../support/host'

const REFUSED = { class: 'connect', message: 'a refuses connections' } as const
const down = new Error('connection refused')

const worldOf = async (
  nodes: Readonly<Record<string, NodeReport>>,
  change: Parameters<typeof host>[1] = {},
): Promise<ReturnType<typeof host>> => {
  const world = host(nodes, change)
  await world.ready()
  return world
}

/** The engine on the node stops: it refuses polls and requests. */
const stop = ({ gateway }: ReturnType<typeof host>, node = 'a'): void => {
  gateway.reports.set(node, down)
  gateway.onForward = (running) => {
    if (running.call.node.name === node) queueMicrotask(() => running.fail({ ...REFUSED }))
  }
}

const start = ({ gateway }: ReturnType<typeof host>, node = 'a', report = resident()): void => {
  gateway.reports.set(node, report)
  gateway.onForward = () => {}
}

for (const policy of ['residency', 'warmth', 'steady']) {
  test(`the first request in an outage is held like the later ones, and served when the node is back (${policy})`, async () => {
    const world = await worldOf({ a: resident() }, { policy: { use: policy, retries: 0 } })
    stop(world)
    const { outcome } = world.submit()
    await world.clock.advance(5_000)

    expect(world.fleet.overview().held).toBe(1)
    expect(world.of('attempt.failed')).toMatchObject([{ node: 'a', failure: REFUSED, retried: true }])
    start(world)
    await world.clock.advance(2_000)
    world.gateway.running[0]?.start()
    world.gateway.running[0]?.finish()
    await world.clock.advance(0)

    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(world.settled()[0]?.outcome).toMatchObject({ end: 'completed', node: 'a', retries: 1 })
    world.expectIdle()
  })
}

test('what it waits for is told: the node is away for this request before it is offline for all', async () => {
  const world = await worldOf({ a: resident() })
  stop(world)
  world.submit()
  await world.clock.advance(10)

  expect(world.fleet.waiters()).toMatchObject([{ kind: 'held', reason: 'unreachable' }])
  expect(world.of('request.placed').at(-1)).toMatchObject({
    cause: 'retry',
    decision: { kind: 'hold' },
    verdicts: [{ node: 'a', verdict: 'eliminated', reason: 'unreachable' }],
  })
  await world.clock.advance(6_000)
  expect(world.fleet.waiters()).toMatchObject([{ kind: 'held', reason: 'offline' }])
})

test('it goes there again only after the node has answered a poll, however often it asks', async () => {
  const world = await worldOf({ a: resident() }, { health: { offlineAfter: 100 } })
  stop(world)
  world.submit()
  await world.clock.advance(20_000)

  expect(world.of('attempt.failed')).toHaveLength(1)
  expect(world.fleet.nodes()[0]?.health).toBe('suspect')
})

test('a node that answers polls and refuses every request is not asked in a loop', async () => {
  const world = await worldOf({ a: resident() })
  stop(world)
  world.gateway.reports.set('a', resident())
  const { outcome } = world.submit()
  await world.clock.advance(1_000)
  // Once more after the first poll that it answered, then every `rescore_every` until the breaker opens.
  expect(world.of('attempt.failed')).toHaveLength(2)
  await world.clock.advance(59_000)

  expect(world.of('attempt.failed').length).toBeLessThanOrEqual(8)
  expect(await outcome).toMatchObject({ error: { code: 'no_capacity' } })
  world.expectIdle()
})

test('other nodes come first, and the retries are for nodes that have seen it', async () => {
  const world = await worldOf({ a: resident(), b: resident(), c: resident() }, { policy: { retries: 1 } })
  world.gateway.onForward = (running) => {
    const { name } = running.call.node
    queueMicrotask(() => running.fail(name === 'a' ? { ...REFUSED } : { class: 'status', status: 500, message: name }))
  }
  const { outcome } = world.submit()
  await world.clock.advance(100)

  expect(world.of('attempt.failed').map(({ node, retried }) => [node, retried])).toEqual([
    ['a', true],
    ['b', true],
    ['c', false],
  ])
  expect(await outcome).toMatchObject({ error: { code: 'upstream_failed', details: { nodes: [{ node: 'c' }] } } })
})

test('a node that has seen the request and broke is not waited for', async () => {
  const world = await worldOf({ a: resident() })
  const { outcome } = world.submit()
  await world.clock.advance(10)
  world.gateway.running[0]?.fail({ class: 'reset' })
  await world.clock.advance(10)

  expect(await outcome).toMatchObject({ error: { code: 'upstream_failed' } })
})

describe('a hold that ends in vain', () => {
  test('names the failure, with the status of any hold that expires', async () => {
    const world = await worldOf({ a: resident() })
    stop(world)
    const { outcome } = world.submit()
    await world.clock.advance(29_000)
    expect(world.settled()).toEqual([])
    await world.clock.advance(2_000)

    const { error } = (await outcome) as { error: Error }
    expect(error).toMatchObject({
      code: 'no_capacity',
      details: { retryAfterSeconds: 5, nodes: [{ node: 'a', reason: 'connect' }] },
    })
    expect(error.message).toEndWith('(policy.hold_timeout). It had failed on a: a refuses connections')
    expect(world.settled()[0]?.outcome).toMatchObject({ end: 'expired', status: 503 })
    world.expectIdle()
  })

  test('counts all the time on hold, over several outages', async () => {
    const world = await worldOf({ a: resident() })
    stop(world)
    const { outcome } = world.submit()
    await world.clock.advance(20_000)
    // It answers its polls again, and refuses the request once more.
    world.gateway.reports.set('a', resident())
    await world.clock.advance(2_000)
    expect(world.of('attempt.failed').length).toBeGreaterThan(1)
    stop(world)
    await world.clock.advance(7_000)
    expect(world.settled()).toEqual([])
    await world.clock.advance(2_000)

    expect(await outcome).toMatchObject({ error: { code: 'no_capacity' } })
    world.expectIdle()
  })

  test('by its deadline says so, and names the failure too', async () => {
    const world = await worldOf({ a: resident() })
    stop(world)
    const { outcome } = world.submit({ deadlineAt: world.clock.now() + 3_000 })
    await world.clock.advance(3_000)

    const { error } = (await outcome) as { error: Error }
    expect(error).toMatchObject({ code: 'deadline_exceeded' })
    expect(error.message).toContain('a refuses connections')
  })
})

test('a client that leaves while its node is away leaves nothing behind', async () => {
  const world = await worldOf({ a: resident() })
  stop(world)
  const { leave } = world.submit()
  await world.clock.advance(5_000)
  leave()
  start(world)
  await world.clock.advance(5_000)

  expect(world.settled()[0]?.outcome).toMatchObject({ end: 'client_disconnected' })
  expect(world.gateway.running).toEqual([])
  world.expectIdle()
})

test('a load that could not be asked for is waited for in the same way', async () => {
  const cold: NodeReport = { models: [{ name: 'm', sizeGb: 4 }], resident: [], canLoad: true, canUnload: true }
  const world = await worldOf({ a: cold }, { policy: { retries: 0 } })
  const { outcome } = world.submit()
  await world.clock.advance(10)
  stop(world)
  world.gateway.loads[0]?.fail(new NodeFault({ ...REFUSED, bytes: 0, elapsedMs: 1 }))
  await world.clock.advance(5_000)
  expect(world.fleet.overview().held).toBe(1)
  expect(world.gateway.loads).toHaveLength(1)

  start(world, 'a', cold)
  await world.clock.advance(2_000)
  world.gateway.loads[1]?.done()
  await world.clock.advance(10)
  world.gateway.running[0]?.start()
  world.gateway.running[0]?.finish()
  await world.clock.advance(0)

  expect(await outcome).toMatchObject({ reply: { status: 200 } })
  world.expectIdle()
})

test('a node that was taken out of the fleet while the request was on its way there is waited for', async () => {
  const world = await worldOf({ a: resident() })
  const { description } = world.fleet.shared.roster.get('a') ?? {}
  stop(world)
  const { outcome } = world.submit()
  world.fleet.removeNode('a')
  await world.clock.advance(5_000)
  expect(world.fleet.overview().held).toBe(1)

  start(world)
  if (description !== undefined) world.fleet.addNode(description)
  await world.clock.advance(2_000)
  world.gateway.running[0]?.start()
  world.gateway.running[0]?.finish()
  await world.clock.advance(0)

  expect(await outcome).toMatchObject({ reply: { status: 200 } })
})
