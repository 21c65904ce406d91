import { expect, test } from 'bun:test'
import type { NodeDescription } from '../../src/domain/node'
import { host, resident, testConfig, testNode } from '../support/host'

type Change = Parameters<typeof testConfig>[0]

const withNodes = (nodes: readonly NodeDescription[], change: Change = {}) =>
  testConfig({ ...change, nodes: nodes as never })

const started = async (...setup: Parameters<typeof host>) => {
  const world = host(...setup)
  await world.ready()
  return world
}

const states = (world: ReturnType<typeof host>) =>
  Object.fromEntries(world.fleet.nodes().map(({ name, state }) => [name, state]))

test('a node that is removed while it answers: the answer ends well, and its queue goes with it', async () => {
  const world = await started({ a: resident(), b: resident() })
  const { outcome } = world.submit({ pin: 'a' })
  await world.clock.advance(0)
  world.gateway.running[0]?.start()

  world.fleet.configure(withNodes([testNode('b')]))
  await world.clock.advance(5_000)
  expect(Object.keys(states(world))).toEqual(['b'])
  world.gateway.running[0]?.finish()
  await world.clock.advance(0)

  expect(await outcome).toMatchObject({ reply: { status: 200 } })
  expect(world.settled()).toMatchObject([{ outcome: { end: 'completed', node: 'a' } }])
  expect(world.of('node.removed')).toMatchObject([{ node: 'a' }])
  expect([...world.fleet.shared.queues.keys()]).toEqual([])
  world.expectIdle()
})

test('a node that comes back under its name while it still answers takes new work at once', async () => {
  const world = await started({ a: resident('m', 2) })
  world.submit()
  await world.clock.advance(0)
  world.gateway.running[0]?.start()

  world.fleet.configure(withNodes([]))
  await world.clock.advance(100)
  world.fleet.configure(withNodes([testNode('a')]))
  const second = world.submit()
  await world.clock.advance(3_000)

  expect(world.gateway.running.map(({ call }) => call.request)).toContain(second.job.id)
  for (const running of [...world.gateway.running]) {
    if (running.call.request === second.job.id) running.start()
    running.finish()
  }
  await world.clock.advance(0)
  expect(world.settled().map(({ outcome }) => outcome.end)).toEqual(['completed', 'completed'])
  world.expectIdle()
})

test('a renamed node: what waited for it is served under the new name, and no attempt is counted', async () => {
  const world = await started({ a: resident() }, { policy: { retries: 0 } })
  world.gateway.reports.set('z', resident())
  for (let i = 0; i < 2; i++) world.submit()
  await world.clock.advance(0)
  world.gateway.running[0]?.start()

  world.fleet.configure(withNodes([testNode('z', { url: 'http://a' })], { policy: { retries: 0 } }))
  await world.clock.advance(3_000)

  expect(world.gateway.running.map(({ call }) => call.node.name).sort()).toEqual(['a', 'z'])
  for (const running of [...world.gateway.running]) {
    if (running.call.node.name === 'z') running.start()
    running.finish()
  }
  await world.clock.advance(0)
  expect(world.settled().map(({ outcome }) => [outcome.end, outcome.retries])).toEqual([
    ['completed', 0],
    ['completed', 0],
  ])
  world.expectIdle()
})

test('a request whose model is being loaded on the removed node is placed elsewhere, without retries too', async () => {
  const cold = { ...resident(), resident: [], canLoad: true }
  const world = await started({ a: cold }, { policy: { retries: 0 } })
  world.submit()
  await world.clock.advance(0)
  expect(world.gateway.loads).toHaveLength(1)

  world.gateway.reports.set('b', resident())
  world.fleet.configure(withNodes([testNode('b')], { policy: { retries: 0 } }))
  await world.clock.advance(3_000)

  expect(world.gateway.running.map(({ call }) => call.node.name)).toEqual(['b'])
  expect(world.gateway.loads[0]?.signal.aborted).toBe(true)
  world.gateway.running[0]?.start()
  world.gateway.running[0]?.finish()
  await world.clock.advance(0)
  expect(world.settled()).toMatchObject([{ outcome: { end: 'completed', node: 'b', retries: 0 } }])
  world.expectIdle()
})

test('other settings of the same server hold for the next request and cut nothing', async () => {
  const world = await started({ a: resident('m', 4) })
  for (let i = 0; i < 3; i++) world.submit()
  await world.clock.advance(0)
  for (const running of world.gateway.running) running.start()
  expect(world.gateway.running).toHaveLength(3)

  const changed = testNode('a', { maxConcurrency: 1, key: 'new-key' })
  world.fleet.configure(withNodes([changed]))
  world.submit()
  await world.clock.advance(0)
  expect(world.gateway.running).toHaveLength(3)
  expect(world.fleet.nodes()[0]).toMatchObject({ maxConcurrency: 1, state: 'online', inFlight: 3 })
  expect(world.of('node.changed')).toMatchObject([{ node: 'a', replaced: false }])

  for (const running of [...world.gateway.running]) running.finish()
  await world.clock.advance(0)
  expect(world.gateway.running.map(({ call }) => call.node.key)).toEqual(['new-key'])
  expect(world.settled().map(({ outcome }) => outcome.end)).toEqual(['completed', 'completed', 'completed'])
})

test('another server under the same name: it is asked anew, running answers end at the old one, a pause stays', async () => {
  const world = await started({ a: resident('m', 2), b: resident() })
  world.submit({ pin: 'a' })
  await world.clock.advance(0)
  world.gateway.running[0]?.start()
  world.fleet.setAdmission('a', 'paused')

  world.fleet.configure(withNodes([testNode('a', { url: 'http://elsewhere:9' }), testNode('b')]))
  expect(world.fleet.nodes().find(({ name }) => name === 'a')).toMatchObject({ health: 'unknown', models: [] })
  await world.clock.advance(3_000)

  expect(states(world)).toEqual({ b: 'online', a: 'paused' })
  expect(world.gateway.running).toHaveLength(1)
  world.fleet.setAdmission('a', 'open')
  world.submit({ pin: 'a' })
  await world.clock.advance(0)
  expect(world.gateway.running[1]?.call.node.url).toBe('http://elsewhere:9')
})

test('policy and limits: a request keeps those it began with, the next one has the new ones', async () => {
  const world = await started({ a: new Error('connection refused') }, { policy: { holdTimeoutMs: 20_000 } })
  world.fleet.addNode(testNode('listed'))
  world.gateway.reports.set('listed', resident())
  await world.clock.advance(3_000)
  world.fleet.setAdmission('listed', 'paused')
  const old = world.submit()
  await world.clock.advance(0)

  world.fleet.configure(
    withNodes([testNode('a'), testNode('listed')], { policy: { holdTimeoutMs: 1_000 }, limits: { concurrent: 2 } }),
  )
  const young = world.submit()
  await world.clock.advance(0)
  const third = world.submit()
  await world.clock.advance(1_100)

  expect(await third.outcome).toMatchObject({ error: { code: 'queue_full' } })
  expect(await young.outcome).toMatchObject({ error: { code: 'no_capacity' } })
  expect(world.settled().some(({ request }) => request === old.job.id)).toBe(false)
  await world.clock.advance(19_000)
  expect(await old.outcome).toMatchObject({ error: { code: 'no_capacity' } })
  world.expectIdle()
})

test('health: the next poll comes at the new interval', async () => {
  const world = await started({ a: resident() }, { health: { pollEveryMs: 60_000 } })
  const before = world.gateway.polls

  world.fleet.configure(withNodes([testNode('a')], { health: { pollEveryMs: 100 } }))
  await world.clock.advance(1_000)

  expect(world.gateway.polls - before).toBeGreaterThanOrEqual(9)
})

test('a configured node takes the place of a found one at the same server; other found ones stay', async () => {
  const world = await started({ a: resident() })
  world.gateway.reports.set('ollama', resident())
  world.gateway.reports.set('llamacpp-8080', resident())
  world.fleet.addNode(testNode('ollama', { origin: 'discovered', url: 'http://127.0.0.1:11434' }))
  world.fleet.addNode(testNode('llamacpp-8080', { origin: 'discovered', url: 'http://127.0.0.1:8080' }))

  world.fleet.configure(withNodes([testNode('a'), testNode('mine', { url: 'http://localhost:11434' })]))

  expect(world.fleet.descriptions().map(({ name }) => name)).toEqual(['a', 'llamacpp-8080', 'mine'])
})

test('the same configuration again changes nothing', async () => {
  const world = await started({ a: resident(), b: resident() })
  world.submit()
  await world.clock.advance(0)
  const count = world.facts.length

  world.fleet.configure(withNodes([testNode('a'), testNode('b')]))
  await world.clock.advance(0)

  expect(world.facts.slice(count)).toEqual([])
  expect(states(world)).toEqual({ a: 'online', b: 'online' })
})
