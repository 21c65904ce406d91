import { describe, expect, test } from 'bun:test'
import type { Candidate } from '../../../src/domain/placement'
import { residency } from '../../../src/placement/policies/residency'
import { candidate, context, hot, jobOf, NOW } from '../../support/candidates'

const decide = (...of: Candidate[]) => residency.choose(of, jobOf(10), context()).decision
const room = { availableGb: 20, costGb: 5 }
const full = { free: 0, inFlight: 1, nodeInFlight: 1 }

describe('a prompt that is longer than a window', () => {
  const small = (name = 'a') => hot(name, { resident: { name: 'm', state: 'ready', contextTokens: 8_192 } })
  const wide = (change: Partial<Candidate> = {}) =>
    hot('b', { resident: { name: 'm', state: 'ready', contextTokens: 32_768 }, ...change })
  const decideFor = (tokens: number, of: readonly Candidate[], change: object = {}) =>
    residency.choose(of, { ...jobOf(tokens), ...change }, context())

  test('goes to a wider one, and waits for it', () => {
    expect(decideFor(20_000, [small(), wide()]).decision).toMatchObject({ kind: 'start', node: 'b' })
    expect(decideFor(20_000, [small(), wide(full)]).decision).toMatchObject({ kind: 'wait', node: 'b' })
    expect(decideFor(20_000, [small(), candidate('b', room)]).decision).toMatchObject({ kind: 'load', node: 'b' })
    expect(decideFor(20_000, [small(), wide(full)]).ranked[1]?.terms).toMatchObject({ window: 8_192 })
  })

  test('is left to the engine where there is none, for it is only estimated', () => {
    expect(decideFor(20_000, [small()]).decision).toMatchObject({ kind: 'start', node: 'a' })
    expect(decideFor(40_000, [small(), wide()]).decision).toMatchObject({ kind: 'start' })
  })

  test('is none where it fits, and many pieces that are embedded are none either', () => {
    expect(decideFor(8_192, [small(), wide(full)]).decision).toMatchObject({ kind: 'start', node: 'a' })
    expect(decideFor(20_000, [small(), wide(full)], { needs: ['embedding'] }).decision).toMatchObject({ node: 'a' })
  })

  test('does not stay with the copy: the next request, which fits, starts there', () => {
    const copies = [small(), wide(full)]
    decideFor(20_000, copies)

    expect(decideFor(10, copies).decision).toMatchObject({ kind: 'start', node: 'a' })
  })
})

test.each([
  [
    'resident with the fewest in flight',
    [hot('a', { inFlight: 1, slots: 4, free: 3 }), hot('b')],
    { kind: 'start', node: 'b' },
  ],
  [
    'resident before cold with room',
    [candidate('a', room), hot('b', { inFlight: 2, slots: 4, free: 2 })],
    { kind: 'start', node: 'b' },
  ],
  [
    'cold with room when the resident is full',
    [hot('a', full), candidate('b', room)],
    { kind: 'load', node: 'b', evicts: [] },
  ],
  [
    'wait for the resident rather than push others out',
    [hot('a', full), candidate('b', { availableGb: 1, costGb: 5, others: [{ name: 'x', memoryGb: 10, busy: false }] })],
    { kind: 'wait', node: 'a' },
  ],
  [
    'push idle ones out when nobody holds it',
    [candidate('b', { availableGb: 1, costGb: 5, others: [{ name: 'x', memoryGb: 10, busy: false }] })],
    { kind: 'load', node: 'b', evicts: ['x'] },
  ],
  [
    'wait rather than push out one that answers',
    [candidate('b', { availableGb: 1, costGb: 5, others: [{ name: 'x', memoryGb: 10, busy: true }] })],
    { kind: 'wait', node: 'b' },
  ],
  [
    'no load with unknown memory beside one that answers',
    [candidate('b', { others: [{ name: 'x', busy: true }] })],
    { kind: 'wait', node: 'b' },
  ],
  [
    'a load with unknown memory beside idle ones',
    [candidate('b', { others: [{ name: 'x', busy: false }] })],
    { kind: 'load', node: 'b' },
  ],
  [
    'join a load that is under way',
    [candidate('a', { loading: 'm', inFlight: 1, slots: 2, free: 1 })],
    { kind: 'load', node: 'a' },
  ],
  ['wait when the load has no slot left', [candidate('a', { loading: 'm', ...full })], { kind: 'wait', node: 'a' }],
  ['wait while it loads another model', [candidate('a', { loading: 'other' })], { kind: 'wait', node: 'a' }],
  ['not a resident that a load could push out', [hot('a', { loading: 'other' })], { kind: 'wait', node: 'a' }],
  [
    'a healthy cold node before a suspect resident',
    [hot('a', { health: 'suspect' }), candidate('b', room)],
    { kind: 'load', node: 'b' },
  ],
  [
    'a suspect resident before waiting',
    [hot('a', { health: 'suspect' }), hot('b', full)],
    { kind: 'start', node: 'a' },
  ],
  [
    'an expired residency is none (BL-C03)',
    [hot('a', { resident: { name: 'm', state: 'ready', expiresAt: NOW - 1 } }), candidate('b', room)],
    { kind: 'load', node: 'b' },
  ],
  [
    'at the cap of resident models the idle one goes',
    [candidate('a', { maxResident: 1, others: [{ name: 'x', busy: false }] })],
    { kind: 'load', evicts: ['x'] },
  ],
  [
    'at the cap of resident models a busy one stays (BL-C02)',
    [candidate('a', { maxResident: 1, others: [{ name: 'x', busy: true }] })],
    { kind: 'wait' },
  ],
  [
    'a resident fallback before a cold primary',
    [candidate('a', room), hot('b', { choice: 1 })],
    { kind: 'start', node: 'b', reason: 'fallback' },
  ],
])('residency: %s', (_what, of, expected) => expect(decide(...of)).toMatchObject(expected))

test('what keeps a model out of a node is named: those that answer there, and the one that is being loaded', () => {
  const others = [
    { name: 'x', busy: true },
    { name: 'y', busy: false },
  ]
  const { ranked } = residency.choose([candidate('b', { loading: 'z', others })], jobOf(10), context())

  expect(ranked[0]?.terms).toMatchObject({ tier: 'blocked', busy_with: 'x and z' })
})

test('among equals who was chosen longest ago goes first, and the record says so', () => {
  const { decision, ranked } = residency.choose(
    [hot('a', { lastChosen: 2 }), hot('b', { lastChosen: 1 })],
    jobOf(10),
    context(),
  )
  expect(decision.node).toBe('b')
  expect(ranked[0]).toMatchObject({ node: 'b', tie: 'least_recently_chosen' })
})

test('a narrower window than asked means a reload, and only when nothing runs there', () => {
  const small = { resident: { name: 'm', state: 'ready' as const, contextTokens: 4_096 }, ...room }
  const job = jobOf(10, { contextTokens: 16_384 })
  expect(residency.choose([hot('a', small)], job, context()).decision).toMatchObject({ kind: 'load', node: 'a' })
  expect(residency.choose([hot('a', { ...small, inFlight: 1, slots: 2 })], job, context()).decision).toMatchObject({
    kind: 'wait',
  })
})
