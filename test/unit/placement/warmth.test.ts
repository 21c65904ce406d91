import { expect, test } from 'bun:test'
import type { Candidate } from '../../../src/domain/placement'
import { warmth } from '../../../src/placement/policies/warmth'
import type { PolicyContext } from '../../../src/placement/policies/policy'
import { DEFAULT_SCORE } from '../../../src/domain/score'
import { availability } from '../../../src/placement/signals/availability'
import { contextFit } from '../../../src/placement/signals/context-fit'
import { memoryFit } from '../../../src/placement/signals/memory-fit'
import { queueDepth } from '../../../src/placement/signals/queue-depth'
import { roleAffinity } from '../../../src/placement/signals/role-affinity'
import { session } from '../../../src/placement/signals/session'
import type { Signal } from '../../../src/placement/signals/signal'
import { guessedServiceMs, wait } from '../../../src/placement/signals/wait'
import { warmth as warmthSignal } from '../../../src/placement/signals/warmth'
import { candidate, context, hot, jobOf, NOW } from '../../support/candidates'
import { testNode } from '../../support/host'

const points = (signal: Signal, of: Candidate, tokens = 0, change: Partial<PolicyContext> = {}): number =>
  signal.score(of, jobOf(tokens), context(change), DEFAULT_SCORE)

const fast = (name: string, bandwidthGBps: number) => ({ node: testNode(name, { bandwidthGBps }) })

test.each([
  ['in memory', hot(), 50],
  ['left memory 29 min ago', candidate('a', { unloadedAt: NOW - 29 * 60_000 }), 30],
  ['left memory 31 min ago', candidate('a', { unloadedAt: NOW - 31 * 60_000 }), 10],
  ['on disk', candidate(), 10],
  ['still loading', candidate('a', { resident: { name: 'm', state: 'loading' } }), 10],
])('signal 1, warmth: %s is %p', (_what, of, expected) => expect(points(warmthSignal, of)).toBe(expected))

test.each([
  [2.01, 20],
  [2.0, 15],
  [1.51, 15],
  [1.5, 8],
  [1.21, 8],
  [1.2, 3],
  [1.0, 3],
  [0.99, 0],
])('signal 2, memory fit: %p times the need is worth %p', (ratio, expected) =>
  expect(points(memoryFit, candidate('a', { availableGb: ratio * 10, costGb: 10 }))).toBe(expected),
)

test('signal 2, memory fit: loaded is worth 20, unknown 0', () => {
  expect(points(memoryFit, hot('a', { availableGb: 1, costGb: 10 }))).toBe(20)
  expect(points(memoryFit, candidate())).toBe(0)
})

test.each([
  [0, 0, 0, -0],
  [1, 0, 0, -6],
  [2, 2, 0, -24],
  [3, 1, 1, -30],
  [9, 0, 0, -30],
])('signal 3, queue depth: %p running, %p bound, %p foreign cost %p', (inFlight, bound, foreign, expected) =>
  expect(points(queueDepth, hot('a', { inFlight, bound, foreign }))).toBe(expected),
)

test.each([
  [2, 30_000, -6],
  [1, 5_000, -0.5],
  [5, 600_000, -25],
  [0, 600_000, 0],
])('signal 4, wait: %p ahead at a p75 of %p ms cost %p', (inFlight, p75, expected) =>
  expect(points(wait, hot('a', { inFlight }), 0, { p75Ms: () => p75 })).toBeCloseTo(expected, 6),
)

test.each([
  [800, 40, 416.67],
  [undefined, 40, 40_000],
  [undefined, 0.5, 1_000],
  [10, 40, 10_000],
])('signal 4, before anything was measured: %p GB/s and %p GB guess %p ms', (bandwidth, sizeGb, expected) => {
  const node = testNode('a', bandwidth === undefined ? {} : { bandwidthGBps: bandwidth })
  expect(guessedServiceMs(candidate('a', { node, costGb: sizeGb }))).toBeCloseTo(expected, 1)
})

test.each([
  [68, 6.7, 4.02, 13.98],
  [100, 7.5, 4.5, 13.5],
  [200, 10, 6, 12],
  [273, 11.83, 7.1, 10.91],
  [400, 15, 9, 9],
  [546, 18.65, 11.19, 6.81],
  [800, 25, 15, 3],
  [1792, 25, 15, 3],
])('signal 5, role affinity at %p GB/s: large %p, middle %p, small %p', (bandwidth, large, middle, small) => {
  const at = (sizeGb: number) =>
    points(roleAffinity, candidate('a', { ...fast('a', bandwidth), stored: { name: 'm', sizeGb } }))
  expect(at(40)).toBeCloseTo(large, 1)
  expect(at(12)).toBeCloseTo(middle, 1)
  expect(at(5)).toBeCloseTo(small, 1)
})

test.each([
  [128, 15, 5, 8],
  [256, 15, 5, 3],
  [64, 5, 5, 8],
  [32, 5, 5, 15],
  [16, 0, 5, 15],
])('signal 5 without a bandwidth, %p GB of memory: large %p, middle %p, small %p', (totalGb, large, middle, small) => {
  const at = (sizeGb: number) => points(roleAffinity, candidate('a', { totalGb, stored: { name: 'm', sizeGb } }))
  expect([at(40), at(12), at(5)]).toEqual([large, middle, small])
})

test('signal 5: the thresholds themselves belong to the middle', () => {
  const at = (sizeGb: number) =>
    points(roleAffinity, candidate('a', { ...fast('a', 400), stored: { name: 'm', sizeGb } }))
  expect([at(20), at(8)]).toEqual([9, 9])
})

test('signal 6, availability: ten times the score, 0 for nodes that do not learn', () => {
  expect(points(availability, hot('a', { availability: 0.82 }))).toBeCloseTo(8.2, 6)
  expect(points(availability, hot())).toBe(0)
})

test.each([
  [999, 1_000, -15],
  [1_000, 1_000, 3],
  [1_499, 1_000, 3],
  [1_500, 1_000, 7.5],
  [2_999, 1_000, 7.5],
  [3_000, 1_000, 12],
  [7_999, 1_000, 12],
  [8_000, 1_000, 15],
])('signal 7, context fit: a window of %p for %p tokens is %p', (contextTokens, tokens, expected) =>
  expect(points(contextFit, hot('a', { resident: { name: 'm', state: 'ready', contextTokens } }), tokens)).toBe(
    expected,
  ),
)

test('signal 7: 0 unless loaded with a known window', () => {
  expect(points(contextFit, hot(), 100)).toBe(0)
  expect(points(contextFit, candidate(), 100)).toBe(0)
})

test.each([
  [0, 20],
  [1, 13.33],
  [2, 10],
  [4, 6.67],
])('signal 8, session: with %p there it is worth %p on its node and 0 elsewhere', (inFlight, expected) => {
  const sessionNode = () => 'a'
  expect(points(session, hot('a', { inFlight }), 0, { sessionNode })).toBeCloseTo(expected, 2)
  expect(points(session, hot('b', { inFlight }), 0, { sessionNode })).toBe(0)
})

test.each([
  [0, 20],
  [1, 7.33],
  [2, -2],
])('between equals the session node leads by 20, 7.3 and trails by 2: %p there is %p', (inFlight, lead) => {
  const sessionNode = () => 'a'
  // The same instant work: only the queue differs, as in the seed's sentence.
  const total = (of: Candidate) => points(queueDepth, of, 0, { sessionNode }) + points(session, of, 0, { sessionNode })
  expect(total(hot('a', { inFlight })) - total(hot('b'))).toBeCloseTo(lead, 2)
})

const total = (of: Candidate, tokens: number, change: Partial<PolicyContext> = {}): number => {
  const { ranked } = warmth.choose([of], jobOf(tokens), context(change))
  return ranked[0]?.rank as number
}

const big = { stored: { name: 'm', sizeGb: 40 }, costGb: 40 }
const loaded = (contextTokens: number) => ({ resident: { name: 'm', state: 'ready' as const, contextTokens } })

test.each([
  [
    '40 GB hot on a 64 GB node, 500 tokens, window 32 768',
    hot('a', { ...big, ...loaded(32_768), totalGb: 64 }),
    500,
    {},
    90,
  ],
  [
    'the same with two there at a p75 of 30 s',
    hot('a', { ...big, ...loaded(32_768), totalGb: 64, inFlight: 2 }),
    500,
    { p75Ms: () => 30_000 },
    72,
  ],
  [
    '40 GB cold on a 128 GB node with 100 GB free',
    candidate('a', { ...big, totalGb: 128, availableGb: 100 }),
    500,
    {},
    45,
  ],
  [
    '5 GB that left memory lately on a 16 GB node with 8 GB free',
    candidate('a', {
      stored: { name: 'm', sizeGb: 5 },
      costGb: 5,
      totalGb: 16,
      availableGb: 8,
      unloadedAt: NOW - 60_000,
    }),
    500,
    {},
    60,
  ],
  [
    '40 GB hot at 819 GB/s, window 4 096 for 5 000 tokens',
    hot('a', { ...big, ...loaded(4_096), ...fast('a', 819) }),
    5_000,
    {},
    80,
  ],
])('golden vector: %s', (_what, of, tokens, change, expected) =>
  expect(total(of, tokens, change)).toBeCloseTo(expected, 6),
)

test('golden vector: 40 GB hot at 819 GB/s, the session node with one there', () => {
  const change = { sessionNode: () => 'a', p75Ms: () => 20_000 }
  expect(total(hot('a', { ...big, ...fast('a', 819), inFlight: 1 }), 0, change)).toBeCloseTo(
    50 + 20 + 25 - 6 - 2 + 13.33,
    2,
  )
})

test('the highest total is bound, ties go to who was chosen longest ago, and the tie is said', () => {
  const { decision, ranked } = warmth.choose(
    [hot('a', { lastChosen: 7 }), hot('b', { lastChosen: 3 }), candidate('c')],
    jobOf(0),
    context(),
  )
  expect(decision).toMatchObject({ kind: 'bind', node: 'b' })
  expect(ranked.map(({ node }) => node)).toEqual(['b', 'a', 'c'])
  expect(ranked[0]?.tie).toBe('least_recently_chosen')
})

test('a loaded fallback is used rather than cold-loading the primary; without one the first that can be loaded', () => {
  const primary = candidate('a', { choice: 0 })
  expect(warmth.choose([primary, hot('b', { choice: 1 })], jobOf(0), context()).decision).toMatchObject({
    node: 'b',
    reason: 'only_candidate',
  })
  expect(warmth.choose([candidate('b', { choice: 1 }), primary], jobOf(0), context()).decision).toMatchObject({
    node: 'a',
  })
})
