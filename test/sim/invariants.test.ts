import { describe, expect, test } from 'bun:test'
import type { Fact } from '../../src/domain/facts'
import { createInvariants } from '../../src/sim/invariants'
import { seededRandom } from '../../src/sim/seeded-random'
import { createSimGateway } from '../../src/sim/sim-gateway'
import { createSimNode, type SimNodeSpec } from '../../src/sim/sim-node'
import { VirtualClock } from '../../src/sim/virtual-clock'
import { testJob } from '../support/host'

const arrived = (id: string): Fact => ({ type: 'request.arrived', at: 0, job: testJob({ id }) })
const settledFact = (request: string): Fact => ({
  type: 'request.settled',
  at: 0,
  request,
  dialect: 'openai',
  asked: 'm',
  priority: 'normal',
  arrivedAt: 0,
  outcome: { end: 'completed', status: 200, phase: 'generating', bytes: 1, retries: 0 },
})
const started = (request: string): Fact => ({
  type: 'request.placed',
  at: 0,
  request,
  cause: 'freed',
  attempt: 1,
  policy: 'residency',
  verdicts: [],
  decision: { kind: 'start', node: 'a', model: 'm', reason: 'resident' },
  tookMs: 0,
})

const quiet = { check: () => {}, holds: () => false, waiting: () => [], left: () => ({}) }
const brokenBy = (core: Partial<Parameters<typeof createInvariants>[0]>, facts: readonly Fact[], answered = ['r']) => {
  const invariants = createInvariants({ ...quiet, ...core }, () => 0)
  for (const fact of facts) invariants.hear(fact)
  for (const request of answered) invariants.answered(request)
  invariants.check()
  invariants.checkIdle()
  return invariants.broken.map((line) => line.replace('after 0 ms: ', ''))
}

describe('a breach is found:', () => {
  const good = [arrived('r'), settledFact('r')]

  test('none in a good run', () => {
    expect(brokenBy({}, good)).toEqual([])
  })

  test('a request that settles twice, never, or is answered twice or never', () => {
    expect(brokenBy({}, [...good, settledFact('r')])).toEqual(['r settled 2 times'])
    expect(brokenBy({}, [arrived('r')])).toEqual(['r never settled'])
    expect(brokenBy({}, good, ['r', 'r'])).toEqual(['r was answered 2 times'])
    expect(brokenBy({}, good, [])).toEqual(['r was never answered'])
  })

  test('a slot that outlives its request, a ledger at odds with itself, anything left at the end', () => {
    const bad = () => {
      throw new Error('counts differ')
    }
    expect(brokenBy({ holds: () => true }, good)).toEqual(['r is settled and holds a slot'])
    expect(brokenBy({ check: bad }, good)).toEqual(['counts differ'])
    expect(brokenBy({ left: () => ({ 'waiters are': 2, 'reservations are': 0 }) }, good)).toEqual([
      '2 waiters are left at the end',
    ])
  })

  test('a request that fails although no node has seen it, and none that one has seen', () => {
    const failed = (kind: 'connect' | 'reset'): Fact => ({
      type: 'attempt.failed',
      at: 0,
      request: 'r',
      node: 'a',
      model: 'm',
      attempt: 1,
      failure: { class: kind, message: '', bytes: 0, elapsedMs: 1 },
      retried: true,
    })
    const end = settledFact('r') as Extract<Fact, { type: 'request.settled' }>
    const failure: Fact = { ...end, outcome: { ...end.outcome, end: 'failed' } }

    expect(brokenBy({}, [arrived('r'), failed('connect'), failure])).toEqual(['r failed although no node has seen it'])
    expect(brokenBy({}, [arrived('r'), failed('connect'), failed('reset'), failure])).toEqual([])
    expect(brokenBy({}, [arrived('r'), failed('connect'), settledFact('r')])).toEqual([])
  })

  test('one that overtakes an elder with the same needs, and none that may', () => {
    const late = testJob({ id: 'r', arrivedAt: 2 })
    const waiting = (change: Parameters<typeof testJob>[0]) => () => [
      { job: testJob({ id: 'elder', arrivedAt: 1, ...change }), excluded: [] },
    ]
    const facts: Fact[] = [{ type: 'request.arrived', at: 0, job: late }, started('r'), settledFact('r')]

    expect(brokenBy({ waiting: waiting({}) }, facts)).toEqual(['r was placed before elder, which came first'])
    expect(brokenBy({ waiting: waiting({ arrivedAt: 3, priority: 'critical' }) }, facts)).toHaveLength(1)
    expect(brokenBy({ waiting: waiting({ priority: 'batch' }) }, facts)).toEqual([])
    expect(brokenBy({ waiting: waiting({ pin: 'a' }) }, facts)).toEqual([])
    const away = () => [
      { job: testJob({ id: 'elder', arrivedAt: 1 }), excluded: [], unreached: [{ node: 'a', since: 0 }] },
    ]
    expect(brokenBy({ waiting: away }, facts)).toEqual([])
    expect(brokenBy({ waiting: waiting({ arrivedAt: 3 }) }, facts)).toEqual([])
  })
})

describe('a simulated machine tells of', () => {
  const spec: SimNodeSpec = {
    name: 'a',
    kind: 'llamacpp',
    memoryGb: 10,
    slots: 1,
    models: [
      { name: 'm', sizeGb: 6 },
      { name: 'n', sizeGb: 6 },
    ],
    loadGbPerSecond: 6,
    prefillMs: [10, 10],
    decodeMs: [100, 100],
    failureChance: 0,
  }
  const machine = async () => {
    const clock = new VirtualClock()
    const breaches: string[] = []
    const node = createSimNode(spec, clock, seededRandom(1), (what) => breaches.push(what))
    const gateway = createSimGateway(new Map([['a', node]]), clock, (what) => breaches.push(what))
    const { signal } = new AbortController()
    const ends: string[] = []
    const listener = {
      started: () => {},
      finished: ({ end }: { end: string }) => void ends.push(end),
      failed: ({ class: kind }: { class: string }) => void ends.push(kind),
      refused: () => {},
      left: () => void ends.push('left'),
    }
    const load = (model: string, evicts: string[] = []) =>
      gateway.load(node.description, model, { evicts }, signal).catch((error: Error) => void ends.push(error.message))
    const send = (request: string, attempt = 1) =>
      gateway.forward({ request, attempt, node: node.description, model: 'm' }, listener, signal)
    void load('m')
    await clock.advance(1_100)
    return { clock, node, gateway, breaches, ends, load, send }
  }

  test('too many at once, and one request sent twice', async () => {
    const { clock, breaches, send, ends } = await machine()
    send('r1')
    send('r2')
    send('r2')
    await clock.advance(500)

    expect(breaches).toContain('r2/1 was sent twice')
    expect(breaches).toContain('2 requests on 1 slots of a/m')
    expect(ends).toEqual(['completed', 'completed', 'completed'])
  })

  test('a request that comes again although the machine was down and has answered no poll since', async () => {
    const { clock, node, gateway, breaches, send } = await machine()
    const poll = () => gateway.report(node.description, new AbortController().signal)
    node.crash()
    send('r1')
    await clock.advance(10)
    node.revive()
    send('r1', 2)
    await clock.advance(10)
    void poll()
    await clock.advance(50)
    send('r1', 3)

    expect(breaches).toEqual(['r1/2 was sent to a again, which has not answered since it was down'])
  })

  test('a busy model that is pushed out, two loads at once, a cut of nothing', async () => {
    const { clock, breaches, load, send, gateway } = await machine()
    send('r1')
    await clock.advance(5)
    void load('n', ['m'])
    void load('m')
    await clock.advance(2)
    gateway.cut('r9', { class: 'truncated', message: '', bytes: 0, elapsedMs: 0 })

    expect(breaches).toEqual([
      'm is pushed out of a while it answers',
      'a loads m while it loads n',
      'r9 is cut although no answer of it flows',
    ])
  })

  test('and it fails as machines do: refused when down, cut off by a crash, late after a freeze', async () => {
    const { clock, node, ends, send } = await machine()
    send('r1')
    await clock.advance(50)
    node.crash()
    send('r2')
    await clock.advance(10)
    expect(ends).toEqual(['incomplete', 'connect'])

    node.revive()
    expect(node.report().resident).toEqual([])
    send('r3')
    await clock.advance(10)
    expect(ends).toEqual(['incomplete', 'connect', 'status'])
    node.freeze(5_000)
    const polled = clock.now()
    let at = 0
    node.later(10, () => {
      at = clock.now() - polled
    })
    await clock.advance(10_000)
    expect(at).toBe(5_000)
  })
})
