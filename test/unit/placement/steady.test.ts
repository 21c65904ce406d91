import { expect, test } from 'bun:test'
import { DEFAULT_COST } from '../../../src/domain/score'
import { steady } from '../../../src/placement/policies/steady'
import { leastConnections, powerOfTwo, random, roundRobin } from '../../../src/placement/policies/yardsticks'
import { candidate, context, hot, jobOf } from '../../support/candidates'
import { testNode } from '../../support/host'

const means = (table: Record<string, { latencyMs: number; tokensPerSecond: number }>) => ({
  nodeMeans: (node: string) => table[node],
})

test('every term of the formula has its weight', () => {
  const busy = hot('a', {
    node: testNode('a', { distance: 2 }),
    inFlight: 3,
    bound: 4,
    slots: 8,
    gpuUtil: 0.5,
    resident: { name: 'm', state: 'ready', kvUsage: 0.25 },
  })
  const idle = hot('b', { node: testNode('b', { distance: 1 }) })
  const change = means({ a: { latencyMs: 4_000, tokensPerSecond: 20 }, b: { latencyMs: 8_000, tokensPerSecond: 40 } })

  const { ranked } = steady.choose([busy, idle], jobOf(1_024, { maxOutputTokens: 1_024 }), context(change))
  const terms = (node: string) => ranked.find((one) => one.node === node)?.terms

  expect(terms('a')).toEqual({
    active: 100 * 3,
    queued: 10 * 4,
    latency: 5 * 0.5,
    job_cost: 2 * 0.5,
    throughput: -3 * 0.5,
    distance: 2,
    kv_pressure: 15 * 0.25,
    gpu_util: 15 * 0.5,
  })
  expect(terms('b')).toEqual({
    active: 0,
    queued: 0,
    latency: 5,
    job_cost: 1,
    throughput: -3,
    distance: 1,
    kv_pressure: 0,
    gpu_util: 0,
  })
  expect(ranked[0]?.node).toBe('b')
  expect(ranked.find(({ node }) => node === 'a')?.rank).toBeCloseTo(300 + 40 + 2.5 + 1 - 1.5 + 2 + 3.75 + 7.5, 9)
})

test('what the node does not report is estimated: KV by running / slots, GPU by whether anything runs', () => {
  const { ranked } = steady.choose([hot('a', { inFlight: 1, foreign: 1, slots: 4 })], jobOf(0), context())
  expect(ranked[0]?.terms).toMatchObject({ active: 200, kv_pressure: 15 * 0.5, gpu_util: 15 })
})

test('a job cost is at most 1', () => {
  const { ranked } = steady.choose([hot()], jobOf(100_000), context())
  expect(ranked[0]?.terms).toMatchObject({ job_cost: 2 })
})

test('a cold node is taken only when all that hold the model are full, unless spill is off', () => {
  const cold = candidate('cold')
  const chosen = (of: Parameters<typeof steady.choose>[0], spill = true) =>
    steady.choose(of, jobOf(0), context({ cost: { ...DEFAULT_COST, spill } })).decision.node
  expect(chosen([hot('a', { inFlight: 1, free: 1 }), cold])).toBe('a')
  expect(chosen([hot('a', { inFlight: 1, free: 0 }), cold])).toBe('cold')
  expect(chosen([hot('a', { inFlight: 1, free: 0 }), cold], false)).toBe('a')
  expect(chosen([cold])).toBe('cold')
})

test('yardsticks: round robin takes turns, least connections counts, power of two draws two, random draws', () => {
  const three = [
    hot('a', { lastChosen: 3, nodeInFlight: 2 }),
    hot('b', { lastChosen: 1, nodeInFlight: 5 }),
    hot('c', { lastChosen: 2, nodeInFlight: 0 }),
  ]
  expect(roundRobin.choose(three, jobOf(0), context()).decision.node).toBe('b')
  expect(leastConnections.choose(three, jobOf(0), context()).decision.node).toBe('c')
  // Draws a and b: the less loaded of the two.
  expect(powerOfTwo.choose(three, jobOf(0), context({ random: () => 0 })).decision.node).toBe('a')
  const draws = [0.9, 0.1, 0.5]
  expect(random.choose(three, jobOf(0), context({ random: () => draws.shift() ?? 0 })).decision.node).toBe('b')
})
