import { describe, expect, test } from 'bun:test'
import { actorOf, COLD, idOf, onceOn, poison, runAll, stateOf } from '../support/crashes'
import { host, resident } from '../support/host'

describe('a queue that breaks', () => {
  test('keeps what runs, and its bound requests are placed again, in order, none twice', async () => {
    const h = host({ a: resident('m', 1) }, { policy: { use: 'least-connections' } })
    await h.ready()
    const requests = [h.submit(), h.submit(), h.submit()]
    await h.clock.advance(0)
    expect(requests.map((request) => stateOf(h, idOf(request)))).toEqual(['starting', 'queued', 'queued'])

    poison(h.fleet.shared.queues.get('queue/a/m'), 'queue.enqueue')
    await h.clock.advance(0)

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'queue/a/m', machine: 'queue', restarted: true }])
    expect(requests.map((request) => stateOf(h, idOf(request)))).toEqual(['starting', 'queued', 'queued'])
    expect(h.gateway.running).toHaveLength(1)
    const order: string[] = []
    h.gateway.onForward = ({ call }) => void order.push(call.request)
    await runAll(h)
    expect(order).toEqual(requests.slice(1).map(({ job }) => job.id))
    expect(h.settled().map(({ outcome }) => outcome.end)).toEqual(['completed', 'completed', 'completed'])
    h.expectIdle()
  })

  test('also one that breaks on the very request that it was to start', async () => {
    const h = host({ a: resident('m', 1) })
    await h.ready()
    const first = h.submit()
    await h.clock.advance(0)
    await runAll(h)
    // Everybody who is granted a slot there now meets a queue whose books are gone.
    const books = h.fleet.shared.queues.get('queue/a/m')?.getSnapshot().context as { running: unknown }
    books.running = undefined

    const second = h.submit()
    await h.clock.advance(0)
    expect(await first.outcome).toMatchObject({ reply: { status: 200 } })
    expect(h.of('actor.failed').map(({ machine }) => machine)).toContain('queue')
    await runAll(h)
    expect(await second.outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })

  test('their supervisor breaks: queues go on under the next one, which hears of them', async () => {
    const h = host({ a: resident('m', 1) }, { policy: { use: 'least-connections' } })
    await h.ready()
    const requests = [h.submit(), h.submit()]
    await h.clock.advance(0)

    poison(actorOf(h, 'queues'), 'queue.enqueue')
    await h.clock.advance(0)
    expect(h.of('actor.failed')).toMatchObject([{ actor: 'queues', restarted: true }])
    expect(requests.map((request) => stateOf(h, idOf(request)))).toEqual(['starting', 'queued'])
    poison(h.fleet.shared.queues.get('queue/a/m'), 'queue.enqueue')
    expect(h.of('actor.failed').map(({ actor }) => actor)).toEqual(['queues', 'queue/a/m'])
    await runAll(h)

    expect(h.settled().map(({ outcome }) => outcome.end)).toEqual(['completed', 'completed'])
    h.expectIdle()
  })
})

describe('a dispatcher that breaks', () => {
  test('is rebuilt from queues and runtimes: who runs runs on, who waits asks again, none lost, none doubled', async () => {
    const h = host({ a: resident('m', 2), b: COLD })
    await h.ready()
    const running = [h.submit(), h.submit()]
    const waiting = [h.submit(), h.submit()]
    const loading = h.submit({ asked: 'x', models: ['x'] })
    const held = h.submit({ pin: 'b', asked: 'm', models: ['m'] })
    await h.clock.advance(0)
    const states = () => [...running, ...waiting, loading].map((request) => stateOf(h, idOf(request)))
    expect(states()).toEqual(['starting', 'starting', 'waiting', 'waiting', 'loading'])

    poison(actorOf(h, 'dispatcher'), 'request.place')
    await h.clock.advance(0)

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'dispatcher', restarted: true }])
    expect(states()).toEqual(['starting', 'starting', 'waiting', 'waiting', 'loading'])
    expect(h.fleet.overview()).toMatchObject({ inFlight: 2, waiting: 3 })
    h.fleet.shared.desk.ledger.check()
    // The load that was under way is the one that it waits for.
    expect(h.gateway.loads).toHaveLength(1)
    h.gateway.reports.set('b', { ...COLD, resident: [{ name: 'x', state: 'ready', memoryGb: 6 }] })
    h.gateway.loads[0]?.done()
    await h.clock.advance(0)
    await runAll(h)
    held.leave()
    await h.clock.advance(0)

    const ends = h.settled().map(({ request, outcome }) => [request, outcome.end])
    expect(new Set(ends.map(([request]) => request)).size).toBe(6)
    expect(ends.filter(([, end]) => end === 'completed')).toHaveLength(5)
    h.expectIdle()
  })

  test('in the middle of a placement: that request is put to the next one and answered', async () => {
    const h = host({ a: resident() }, { record: onceOn(({ type }) => type === 'request.placed') })
    await h.ready()

    const { outcome } = h.submit()
    await h.clock.advance(0)
    await runAll(h)

    expect(h.of('actor.failed')).toMatchObject([{ actor: 'dispatcher', message: 'injected' }])
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })

  test('each time on the same request: that one is answered `internal`, the others wait in peace', async () => {
    const broken = 'req_poison'
    const h = host(
      { a: resident() },
      {
        record: (fact) => {
          if (fact.type === 'request.placed' && fact.request === broken) throw new Error('injected')
        },
      },
    )
    await h.ready()
    const before = [h.submit(), h.submit(), h.submit()]
    const bad = h.submit({ id: broken })
    await h.clock.advance(0)

    expect(await bad.outcome).toMatchObject({ error: { code: 'internal' } })
    expect(h.of('actor.failed')).toHaveLength(2)
    await runAll(h)
    for (const { outcome } of before) expect(await outcome).toMatchObject({ reply: { status: 200 } })
    h.expectIdle()
  })

  test('a request back from a node that may still compute for it keeps that slot and gets another', async () => {
    const h = host({ a: resident(), b: resident() }, { describe: () => ({ kind: 'ollama' }) })
    await h.ready()
    const { outcome } = h.submit()
    await h.clock.advance(0)
    const first = h.gateway.running[0]?.call.node.name
    h.gateway.reports.set(first ?? '', 'hang')
    await h.clock.advance(600_000)

    expect(h.of('actor.failed')).toEqual([])
    expect(h.gateway.running.map(({ call }) => call.node.name)).not.toEqual([first])
    expect(h.fleet.shared.desk.ledger.total()).toBe(2)
    await runAll(h)
    expect(await outcome).toMatchObject({ reply: { status: 200 } })
    await h.clock.advance(20_000)
    h.expectIdle()
  })
})
