import { describe, expect, test } from 'bun:test'
import type { Fact } from '../../../src/domain/facts'
import type { DecisionRecord } from '../../../src/domain/record'
import { recordMatches } from '../../../src/domain/record-keys'
import { createDecisions, type RecordStore } from '../../../src/observe/decisions'
import {
  ARRIVAL,
  arrived,
  eliminated,
  failed,
  HOLD,
  job,
  ordinary,
  outcome,
  phase,
  placed,
  ranked,
  settled,
  start,
  tooBig,
} from './builders'

const hearing = (facts: readonly Fact[], store?: RecordStore) => {
  const decisions = createDecisions({ version: '0.1.0', ...(store && { store }) })
  for (const fact of facts) decisions.hear(fact)
  return decisions
}

const recordOf = (...facts: Fact[]): DecisionRecord => {
  const found = hearing(facts).get('req_1')
  if (!found) throw new Error('no record')
  return found
}

const fakeStore = (): RecordStore & { saved: DecisionRecord[] } => {
  const saved: DecisionRecord[] = []
  return {
    saved,
    save: (one) => void saved.push(one),
    get: (id) => saved.find((one) => one.id === id),
    last: () => saved.at(-1),
    list: (query) =>
      saved
        .filter((one) => recordMatches(one, query))
        .reverse()
        .slice(0, query.limit),
  }
}

describe('building', () => {
  test('a request leaves its question, its placement, its phases and its outcome', () => {
    const built = recordOf(...ordinary(job({ session: 's1', clientRequestId: 'abc', key: 'team' })))

    expect(built).toMatchObject({
      id: 'req_1',
      at: ARRIVAL,
      version: '0.1.0',
      models: ['qwen3:8b'],
      asked: { model: 'qwen3:8b', operation: 'openai.chat', session: 's1', clientRequestId: 'abc', key: 'team' },
      rounds: [{ atMs: 0.4, cause: 'arrival', policy: 'residency', decision: { kind: 'start', node: 'rig' } }],
      outcome: { end: 'completed', totalMs: 9_800, residency: 'resident', tokensOut: 212 },
    })
    expect(built.rounds[0]?.nodes).toHaveLength(3)
    expect(built.rounds[0]).not.toHaveProperty('more')
  })

  test('each phase closes the one before and the end closes the last', () => {
    const { phases } = recordOf(...ordinary())

    expect(phases).toEqual([
      { name: 'placing', fromMs: 0, toMs: 0.4 },
      { name: 'prefill', node: 'rig', fromMs: 0.4, toMs: 4_020 },
      { name: 'generating', node: 'rig', fromMs: 4_020, toMs: 9_800 },
    ])
  })

  test('a running request has an open phase and no outcome', () => {
    const built = recordOf(
      arrived(),
      phase(3, 'waiting', { node: 'rig', estimate: { valueMs: 5, basis: 'default', samples: 0 } }),
    )

    expect(built.phases).toEqual([
      { name: 'waiting', node: 'rig', fromMs: 3, estimate: { valueMs: 5, basis: 'default', samples: 0 } },
    ])
    expect(built.outcome).toBeUndefined()
  })

  test('rounds that say the same are counted, others stand', () => {
    const hold = (atMs: number, reason: string) => placed(atMs, [eliminated('rig', reason)], HOLD, { cause: 'hold' })
    const { rounds } = recordOf(
      arrived(),
      placed(0, [eliminated('rig', 'offline')], HOLD),
      hold(2_000, 'offline'),
      hold(4_000, 'offline'),
      hold(6_000, 'paused'),
      placed(8_000, [ranked('rig', [0])], start('rig'), { cause: 'freed' }),
    )

    expect(rounds.map(({ atMs, repeated }) => [atMs, repeated])).toEqual([
      [0, 2],
      [6_000, undefined],
      [8_000, undefined],
    ])
  })

  test('other nodes, another decision or another count beyond the eight best make another round', () => {
    const many = (reason: string) =>
      Array.from({ length: 12 }, (_, i) => eliminated(`n${i}`, i > 8 ? reason : 'offline'))
    const { rounds } = recordOf(
      arrived(),
      placed(0, many('paused'), HOLD),
      placed(1, many('paused'), HOLD),
      placed(2, many('role'), HOLD),
      placed(3, [ranked('a', [1])], start('a')),
      placed(4, [ranked('a', [1])], { ...start('a'), kind: 'wait' }),
      placed(5, [ranked('b', [1])], { ...start('a'), kind: 'wait' }),
    )

    expect(rounds.map(({ atMs }) => atMs)).toEqual([0, 2, 3, 4, 5])
  })

  test('of many candidates the best eight stay and the rest is counted by reason', () => {
    const verdicts = [
      ...Array.from({ length: 10 }, (_, i) => ranked(`n${i}`, [0, 9 - i])),
      eliminated('x1', 'offline'),
      eliminated('x2', 'offline'),
      tooBig('x3'),
    ]
    const [round] = recordOf(arrived(), placed(0, verdicts, start('n9'))).rounds

    expect(round?.nodes.map(({ node }) => node)).toEqual(['n9', 'n8', 'n7', 'n6', 'n5', 'n4', 'n3', 'n2'])
    expect(round?.more).toEqual({ ranked: 2, eliminated: { offline: 2, memory_fit: 1 } })
  })

  test('totals rank by the direction in which the chosen node is the best', () => {
    const verdicts = Array.from({ length: 10 }, (_, i) => ranked(`n${i}`, i))
    const highest = recordOf(arrived(), placed(0, verdicts, start('n9'))).rounds[0]
    const lowest = recordOf(arrived(), placed(0, verdicts, start('n0'))).rounds[0]

    expect(highest?.nodes.map(({ node }) => node)).toEqual(['n9', 'n8', 'n7', 'n6', 'n5', 'n4', 'n3', 'n2'])
    expect(lowest?.nodes.map(({ node }) => node)).toEqual(['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7'])
  })

  test('a failed attempt keeps its class, message and whether it was tried elsewhere', () => {
    const { failures } = recordOf(arrived(), failed(20, 'rig'))

    expect(failures).toEqual([
      {
        node: 'rig',
        model: 'qwen3:8b',
        atMs: 20,
        class: 'connect',
        message: 'connection refused',
        bytes: 0,
        elapsedMs: 12,
        retried: true,
      },
    ])
  })

  test('whatever clients and nodes send, a record stays small', () => {
    const long = 'x'.repeat(100_000)
    const facts: Fact[] = [
      arrived(
        job({
          asked: long,
          session: long,
          clientRequestId: long,
          tags: Array.from({ length: 500 }, () => long),
          models: Array.from({ length: 500 }, () => long),
        }),
      ),
    ]
    for (let i = 0; i < 300; i++) {
      facts.push(phase(i, 'held'), phase(i, 'waiting'))
      facts.push(placed(i, [eliminated(`n${i}`, 'offline')], HOLD))
      facts.push(failed(i, 'rig', { failure: { class: 'status', message: long, bytes: 0, elapsedMs: 1 } }))
    }
    facts.push(settled(400, { outcome: outcome({ message: long }) }))

    expect(JSON.stringify(recordOf(...facts)).length).toBeLessThan(40_000)
  })

  test('the first and the last rounds survive when there are too many', () => {
    const facts = Array.from({ length: 100 }, (_, i) => placed(i, [eliminated(`n${i}`, 'offline')], HOLD))
    const { rounds } = recordOf(arrived(), ...facts)

    expect(rounds.length).toBeLessThanOrEqual(32)
    expect(rounds[0]?.atMs).toBe(0)
    expect(rounds.at(-1)?.atMs).toBe(99)
  })
})

describe('asking', () => {
  const many = (count: number): Fact[] =>
    Array.from({ length: count }, (_, i) => ordinary(job({ id: `req_${i}`, arrivedAt: ARRIVAL + i }))).flat()

  test('the newest arrival is the last, running or settled', () => {
    const decisions = hearing([...ordinary(), arrived(job({ id: 'req_2', arrivedAt: ARRIVAL + 1 }))])

    expect(decisions.last()?.id).toBe('req_2')
  })

  test('memory keeps the last settled ones, the store answers for the others', () => {
    const store = fakeStore()
    const decisions = createDecisions({ version: '0.1.0', store, keep: 10 })
    for (const fact of many(25)) decisions.hear(fact)
    const withoutStore = createDecisions({ version: '0.1.0', keep: 10 })
    for (const fact of many(25)) withoutStore.hear(fact)

    expect(store.saved).toHaveLength(25)
    expect(decisions.get('req_0')?.id).toBe('req_0')
    expect(withoutStore.get('req_0')).toBeUndefined()
    expect(withoutStore.get('req_24')?.id).toBe('req_24')
    expect(decisions.list({ limit: 20 }).map(({ id }) => id)).toEqual(
      Array.from({ length: 20 }, (_, i) => `req_${24 - i}`),
    )
  })

  test('from the moment it settled the store alone answers for a record', () => {
    const store = fakeStore()
    const decisions = hearing(ordinary(), store)

    expect(decisions.get('req_1')).toBe(store.saved[0])
    expect(decisions.list({ limit: 5 })).toEqual(store.saved)
    store.saved.length = 0
    expect(decisions.get('req_1')).toBeUndefined()
    expect(decisions.list({ limit: 5 })).toEqual([])
  })

  test('lists mix running and settled ones by arrival, as many as asked for', () => {
    const store = fakeStore()
    const decisions = createDecisions({ version: '0.1.0', store })
    const of = (i: number) => job({ id: `req_${i}`, arrivedAt: ARRIVAL + i })
    for (const i of [0, 1, 2, 3]) decisions.hear(arrived(of(i)))
    for (const fact of [...ordinary(of(4)), settled(5, { request: 'req_1' }), settled(6, { request: 'req_3' })])
      decisions.hear(fact)

    const ids = (limit: number) => decisions.list({ limit }).map(({ id }) => id)
    expect(ids(10)).toEqual(['req_4', 'req_3', 'req_2', 'req_1', 'req_0'])
    expect(ids(3)).toEqual(['req_4', 'req_3', 'req_2'])
  })

  test('after a restart the last one comes from the store', () => {
    const store = fakeStore()
    hearing(ordinary(), store)

    expect(createDecisions({ version: '0.1.0', store }).last()?.id).toBe('req_1')
  })

  test('lists filter by model in any spelling, node, end and client id', () => {
    const decisions = hearing([
      ...ordinary(job({ clientRequestId: 'abc' })),
      arrived(job({ id: 'req_2', asked: 'Llava', models: ['Llava'], arrivedAt: ARRIVAL + 1 })),
    ])
    const ids = (filter: object) => decisions.list({ limit: 10, ...filter }).map(({ id }) => id)

    expect(ids({})).toEqual(['req_2', 'req_1'])
    expect(ids({ model: 'llava:latest' })).toEqual(['req_2'])
    expect(ids({ node: 'rig' })).toEqual(['req_1'])
    expect(ids({ end: 'completed' })).toEqual(['req_1'])
    expect(ids({ end: 'running' })).toEqual(['req_2'])
    expect(ids({ clientRequestId: 'abc' })).toEqual(['req_1'])
  })

  test('facts of an unknown request are ignored', () => {
    expect(hearing([settled(1), failed(1, 'rig')]).list({ limit: 10 })).toEqual([])
  })
})
