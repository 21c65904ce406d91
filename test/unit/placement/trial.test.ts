import { describe, expect, test } from 'bun:test'
import type { Candidate, Placement } from '../../../src/domain/placement'
import { residency } from '../../../src/placement/policies/residency'
import { trialFor } from '../../../src/placement/trial'
import { context, hot, jobOf, NOW } from '../../support/candidates'

const full = (name = 'a', change: Partial<Candidate> = {}): Candidate =>
  hot(name, { canLoad: false, inFlight: 1, nodeInFlight: 1, free: 0, ...change })

const placed = (candidates: readonly Candidate[], job = jobOf(10)): Placement => {
  const { decision, ranked } = residency.choose(candidates, job, context())
  return { decision, verdicts: ranked, policy: 'residency' }
}

const tried = (candidates: readonly Candidate[], job = jobOf(10), mayTry: (one: Candidate) => boolean = () => true) =>
  trialFor(placed(candidates, job), candidates, job, NOW, mayTry)

test('a request that would wait is tried on the best node where that is due', () => {
  const candidates = [full('a'), full('b'), full('c')]
  const trial = tried(candidates, jobOf(10), ({ node }) => node.name !== 'a')

  expect(trial?.decision).toEqual({ kind: 'start', node: 'b', model: 'm', reason: 'resident' })
  expect(trial?.verdicts.map((one) => one.verdict === 'ranked' && one.terms.trial)).toEqual([
    undefined,
    'one_more',
    undefined,
  ])
})

test('one that need not wait is not', () => {
  expect(tried([full('a'), hot('b')])).toBeUndefined()
})

describe('nothing is tried', () => {
  test.each([
    ['that comes whole', { stream: false }],
    ['that is critical', { priority: 'critical' }],
    ['that needs another window', { contextTokens: 9_000 }],
  ] as const)('%s', (_what, change) => {
    const candidates = [full('a', { resident: { name: 'm', state: 'ready', contextTokens: 4_096 } })]

    expect(tried(candidates)).toBeDefined()
    expect(tried(candidates, jobOf(10, change))).toBeUndefined()
  })

  test.each([
    ['whose slots are configured', { slotsBasis: 'configured' }],
    ['whose engine reports them', { slotsBasis: 'reported' }],
    ['whose memory says how many', { slotsBasis: 'memory' }],
    ['that runs one more already', { inFlight: 2 }],
    ['that others use too', { foreign: 1 }],
    ['where somebody is bound to it', { bound: 1 }],
    ['that is suspect', { health: 'suspect' }],
    ['that is being proved again', { breaker: 'half_open' }],
    ['that refused a moment ago', { isRefusing: true }],
    ['that loads', { loading: 'other' }],
    ['that answers with another model', { others: [{ name: 'other', busy: true }] }],
    ['whose share for batch work is used up', { shareLeft: 0 }],
    ['that loads the model', { resident: { name: 'm', state: 'loading' } }],
  ] as const)('on a node %s', (_what, change) => {
    const candidates = [full('a', change)]
    const { verdicts, policy } = placed(candidates)
    const waits: Placement = { decision: { kind: 'wait', reason: 'held' }, verdicts, policy }

    expect(trialFor(waits, candidates, jobOf(10), NOW, () => true)).toBeUndefined()
  })
})
