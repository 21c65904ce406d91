import { describe, expect, test } from 'bun:test'
import { dispatcherChart } from '../../actors/dispatcher.machine'
import { fleetMachine } from '../../actors/fleet.machine'
import { requestsChart } from '../../actors/requests.machine'
import { actorOf, COLD, idOf, poison, runAll } from '../support/crashes'
import { host, resident, testConfig, testNode } from '../support/host'
import { missing, walkOfChart, walkOfMachine, watch } from '../support/transitions'

const walks = {
  fleet: walkOfMachine(fleetMachine),
  requests: walkOfChart(requestsChart),
  dispatcher: walkOfChart(dispatcherChart),
}

const watched = async (...[nodes, change]: Parameters<typeof host>) => {
  const h = host(nodes, change)
  watch(h.fleet.root, walks)
  await h.ready()
  return h
}

describe('fleet:', () => {
  test('nodes come, go and are configured anew; what nobody expects is noted', async () => {
    const h = await watched({ a: resident() })
    h.gateway.reports.set('b', resident())
    h.fleet.addNode(testNode('b'))
    await h.clock.advance(10)
    expect(h.fleet.nodes().map(({ name }) => name)).toEqual(['a', 'b'])
    h.fleet.removeNode('a')
    h.fleet.configure(testConfig({ nodes: [testNode('c')] as never }))
    expect(h.fleet.nodes().map(({ name }) => name)).toEqual(['c'])
    h.fleet.root.send({ type: 'xstate.done.actor.stranger', actorId: 'stranger' })
    h.fleet.root.send({ type: 'xstate.error.actor.stranger', actorId: 'stranger', error: new Error('odd') })
    expect(h.of('actor.failed')).toMatchObject([{ actor: 'stranger', message: 'odd', restarted: false }])
  })

  test('each child that breaks is replaced, a node until it broke too often', async () => {
    const h = await watched({ a: resident() })
    poison(actorOf(h, 'dispatcher'), 'request.place')
    poison(actorOf(h, 'queues'), 'queue.enqueue')
    poison(actorOf(h, 'requests'), 'request.submit')
    for (let i = 0; i < 6; i++) poison(actorOf(h, 'node/a'), 'node.configure')

    expect(h.of('actor.failed').map(({ actor, restarted }) => [actor, restarted])).toEqual([
      ['dispatcher', true],
      ['queues', true],
      ['requests', true],
      ...Array.from({ length: 5 }, () => ['node/a', true]),
      ['node/a', false],
    ])
  })

  test('drains: at once when nothing runs, when the last one ends, or by cutting after the grace', async () => {
    const idle = await watched({ a: resident() })
    expect(await idle.fleet.stop(1_000)).toEqual({ cut: 0 })

    const ending = await watched({ a: resident() })
    ending.submit()
    await ending.clock.advance(0)
    const ended = ending.fleet.stop(1_000)
    await runAll(ending)
    expect(await ended).toEqual({ cut: 0 })

    const cutting = await watched({ a: resident() })
    const { outcome } = cutting.submit()
    await cutting.clock.advance(0)
    const cut = cutting.fleet.stop(1_000)
    await cutting.clock.advance(1_000)
    expect(await cut).toEqual({ cut: 1 })
    expect(await outcome).toMatchObject({ error: { code: 'draining' } })
  })

  test('every transition was taken', () => {
    expect(missing('fleet', walks.fleet)).toEqual([])
  })
})

describe('requests:', () => {
  test('takes up to its limit, which a configuration may change, and reaps', async () => {
    const h = await watched({ a: resident() }, { limits: { concurrent: 1 } })
    const first = h.submit()
    await h.clock.advance(0)
    expect(await h.submit().outcome).toMatchObject({ error: { code: 'queue_full' } })
    h.fleet.configure(testConfig({ nodes: [testNode('a')] as never, limits: { concurrent: 2 } }))
    const second = h.submit()
    poison(actorOf(h, 'requests'), 'requests.unbind')
    poison(actorOf(h, 'requests'), 'requests.replace')
    await runAll(h)
    for (const { outcome } of [first, second]) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    poison(h.fleet.shared.requests.get(idOf(h.submit())), 'reply.refused')
    await h.clock.advance(20_000)
    h.expectIdle()
  })

  test('draining, takes none and is done when the last has ended, however it ends', async () => {
    for (const lastBreaks of [false, true]) {
      const h = await watched({ a: resident('m', 4) })
      const [first, second, third] = [h.submit(), h.submit(), h.submit()]
      await h.clock.advance(0)
      const stopped = h.fleet.stop(60_000)
      expect(await h.submit().outcome).toMatchObject({ error: { code: 'draining' } })
      poison(h.fleet.shared.requests.get(idOf(first)), 'slot.granted')
      h.gateway.running[0]?.start()
      h.gateway.running[0]?.finish()
      poison(h.fleet.shared.requests.get(idOf(second)), 'reply.refused')
      await h.clock.advance(0)
      if (lastBreaks) poison(h.fleet.shared.requests.get(idOf(third)), 'reply.refused')
      else await runAll(h)
      expect(await stopped).toEqual({ cut: 0 })
    }
  })

  test('drained, it takes none either', async () => {
    const h = await watched({ a: resident() })
    actorOf(h, 'requests').send({ type: 'requests.drain' })
    expect(await h.submit().outcome).toMatchObject({ error: { code: 'draining' } })
  })

  test('every transition was taken', () => {
    expect(missing('requests', walks.requests)).toEqual([])
  })
})

describe('dispatcher:', () => {
  test('late: places, loads, lingers, looks again at each change', async () => {
    const h = await watched({ a: resident(), b: COLD, c: new Error('connection refused') })
    const first = h.submit()
    const waits = h.submit()
    const cold = h.submit({ asked: 'x', models: ['x'] })
    await h.clock.advance(0)
    h.gateway.running[0]?.start()
    first.leave()
    await h.clock.advance(2_000)
    await runAll(h)
    h.gateway.loads[0]?.fail('no memory')
    await h.clock.advance(100)
    const again = h.submit({ asked: 'x', models: ['x'] })
    await h.clock.advance(0)
    h.gateway.reports.set('b', { ...COLD, resident: [{ name: 'x', state: 'ready', memoryGb: 6 }] })
    h.gateway.loads[1]?.done()
    await h.clock.advance(10)
    await runAll(h)
    for (const { outcome } of [waits, again]) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    expect(await cold.outcome).toMatchObject({ error: {} })
    poison(h.fleet.shared.roster.get('b')?.runtime, 'runtime.observed')
    h.fleet.configure(testConfig({ nodes: [testNode('a')] as never }))
    h.expectIdle()
  })

  test('early: binds, starts who is next, declines, and hears of queues that break', async () => {
    const h = await watched({ a: resident() }, { policy: { use: 'least-connections' } })
    const requests = [h.submit(), h.submit(), h.submit()]
    await h.clock.advance(0)
    requests[2]?.leave()
    actorOf(h, 'queues').send({ type: 'queue.start', node: 'a', model: 'nothing', batch: true })
    poison(h.fleet.shared.queues.get('queue/a/m'), 'queue.enqueue')
    await runAll(h)
    expect(h.settled().filter(({ outcome }) => outcome.end === 'completed')).toHaveLength(2)
    h.expectIdle()
  })

  test('a node that stands still: whoever waits there is told of another that is free', async () => {
    const h = await watched(
      { a: resident('m', 8), b: new Error('connection refused') },
      { health: { stallAfterMs: 1_000, stallRequests: 1 } },
    )
    const { outcome } = h.submit()
    await h.clock.advance(0)
    h.gateway.reports.set('b', resident('m', 8))
    await h.clock.advance(10_000)
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
  })

  test('every transition was taken', () => {
    expect(missing('dispatcher', walks.dispatcher)).toEqual([])
  })
})
