import { describe, expect, test } from 'bun:test'
import { actorOf, COLD, idOf, onceOn, poison, runAll, stateOf } from '../support/crashes'
import { host, resident, testNode } from '../support/host'

const nodeOf = ({ fleet }: ReturnType<typeof host>, name: string) => fleet.nodes().find((node) => node.name === name)

describe('BL-Y03 a node actor that breaks', () => {
  test('is restarted with its state rebuilt: polled anew, paused still, its answers undisturbed', async () => {
    const h = host({ a: resident('m', 2), b: resident('m', 2) })
    await h.ready()
    h.fleet.setAdmission('a', 'draining')
    const running = h.submit()
    await h.clock.advance(0)

    for (const name of ['a', 'b']) poison(actorOf(h, `node/${name}`), 'node.configure')
    expect(nodeOf(h, 'b')).toMatchObject({ health: 'unknown' })
    await h.clock.advance(10)

    expect(h.of('actor.failed')).toMatchObject([
      { actor: 'node/a', machine: 'node', restarted: true },
      { actor: 'node/b', machine: 'node', restarted: true },
    ])
    expect(nodeOf(h, 'a')).toMatchObject({ health: 'online', admission: 'draining', state: 'draining' })
    expect(nodeOf(h, 'b')).toMatchObject({ health: 'online', admission: 'open', inFlight: 1 })
    expect(nodeOf(h, 'b')?.resident).toMatchObject([{ name: 'm' }])
    await runAll(h)
    expect(await running.outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })

  test('in the middle of an action, by a journal that throws once, is restarted too', async () => {
    const h = host({ a: resident() }, { record: onceOn(({ type }) => type === 'node.health') })
    await h.ready()

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'node/a', message: 'injected', restarted: true }])
    const { outcome } = h.submit()
    await h.clock.advance(10)
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
  })

  test('while it loads a model: whoever waited for that is placed again, without blame on the node', async () => {
    const h = host({ a: COLD })
    await h.ready()
    const { outcome, job } = h.submit({ asked: 'x', models: ['x'] })
    await h.clock.advance(0)
    const [lost] = h.gateway.loads
    expect(stateOf(h, idOf({ job }))).toBe('loading')

    poison(actorOf(h, 'node/a'), 'node.configure')
    expect(lost?.signal.aborted).toBe(true)
    await h.clock.advance(10)
    expect(h.gateway.loads).toHaveLength(2)
    h.gateway.reports.set('a', { ...COLD, resident: [{ name: 'x', state: 'ready', memoryGb: 6 }] })
    h.gateway.loads[1]?.done()
    await h.clock.advance(10)
    await runAll(h)

    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(h.settled()).toMatchObject([{ outcome: { retries: 0 } }])
    h.expectIdle()
  })

  test('more than 5 times in 60 s is quarantined, visible, and whole again when it is added anew', async () => {
    const h = host({ a: resident(), b: resident() }, { policy: { use: 'least-connections' } })
    await h.ready()
    for (let i = 0; i < 5; i++) {
      poison(actorOf(h, 'node/a'), 'node.configure')
      await h.clock.advance(1_000)
      expect(nodeOf(h, 'a')?.state).toBe('online')
    }
    const requests = [h.submit(), h.submit(), h.submit(), h.submit()]
    await h.clock.advance(0)
    expect(h.fleet.overview().healthyNodes).toBe(2)

    poison(actorOf(h, 'node/a'), 'node.configure')
    await h.clock.advance(10)

    expect(nodeOf(h, 'a')).toMatchObject({ state: 'quarantined', health: 'offline' })
    expect(h.of('actor.failed').at(-1)).toMatchObject({ actor: 'node/a', restarted: false })
    expect(h.fleet.overview().healthyNodes).toBe(1)
    expect(stateOf(h, 'node/a')).toBe('error')
    // Those who were bound there go to the other one.
    expect(h.fleet.queues().map(({ node, waiting }) => [node, waiting])).toContainEqual(['b', 2])
    await runAll(h)
    for (const { outcome } of requests) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()

    h.fleet.removeNode('a')
    h.fleet.addNode(testNode('a'))
    await h.clock.advance(10)
    expect(nodeOf(h, 'a')?.state).toBe('online')
    expect(h.fleet.overview().healthyNodes).toBe(2)
  })

  test('5 times in more than 60 s is restarted each time', async () => {
    const h = host({ a: resident() })
    await h.ready()
    for (let i = 0; i < 8; i++) {
      poison(actorOf(h, 'node/a'), 'node.configure')
      await h.clock.advance(13_000)
    }
    expect(nodeOf(h, 'a')?.state).toBe('online')
  })
})

describe('a poller that breaks', () => {
  test('takes its node along, which is started again and polled anew; its requests go on', async () => {
    const h = host({ a: resident() })
    await h.ready()
    const { outcome } = h.submit()
    await h.clock.advance(0)
    const before = h.gateway.polls

    actorOf(h, 'poller/a').send({ type: 'node.poll' })
    // A report that is none.
    poison(actorOf(h, 'poller/a'), 'poll.answered')
    await h.clock.advance(10)

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'node/a', machine: 'node', restarted: true }])
    expect(h.gateway.polls).toBeGreaterThan(before + 1)
    expect(nodeOf(h, 'a')?.state).toBe('online')
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })
})

describe('a runtime that breaks', () => {
  test('loses its load and says so: the request is placed again and served, the next poll fills the memory', async () => {
    const h = host({ a: COLD })
    await h.ready()
    const { outcome } = h.submit({ asked: 'x', models: ['x'] })
    await h.clock.advance(0)
    const [lost] = h.gateway.loads

    poison(h.fleet.shared.roster.get('a')?.runtime, 'runtime.observed')
    await h.clock.advance(10)

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'runtime/a', machine: 'runtime', restarted: true }])
    expect(lost?.signal.aborted).toBe(true)
    expect(h.gateway.loads).toHaveLength(2)
    h.gateway.reports.set('a', { ...COLD, resident: [{ name: 'x', state: 'ready', memoryGb: 6 }] })
    h.gateway.loads[1]?.done()
    await h.clock.advance(10)
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(h.settled()).toMatchObject([{ outcome: { retries: 0 } }])
    h.expectIdle()
  })

  test('again and again takes its node along, which is quarantined in the end, and the request hears of it', async () => {
    const h = host({ a: COLD })
    await h.ready()
    const { outcome } = h.submit({ asked: 'x', models: ['x'] })
    for (let i = 0; i < 200 && nodeOf(h, 'a')?.state !== 'quarantined'; i++) {
      await h.clock.advance(10)
      poison(h.fleet.shared.roster.get('a')?.runtime, 'runtime.observed')
    }
    expect(nodeOf(h, 'a')?.state).toBe('quarantined')
    await h.clock.advance(31_000)
    expect(await outcome).toMatchObject({ error: { code: 'no_capacity' } })
    h.expectIdle()
  })
})
