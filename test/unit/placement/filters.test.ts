import { expect, test } from 'bun:test'
import type { Job } from '../../../src/domain/job'
import type { Candidate } from '../../../src/domain/placement'
import { filters } from '../../../src/placement/filters'
import { eliminate, isTemporary } from '../../../src/placement/place'
import { candidate, hot, NOW } from '../../support/candidates'
import { testJob, testNode } from '../../support/host'

const reasonFor = (of: Candidate, job: Partial<Job> = {}, excluded: string[] = []) => {
  const verdict = eliminate(of, testJob(job), { now: NOW, excluded: new Set(excluded) })
  if (verdict === undefined) return undefined
  const { reason, need, have, unit } = verdict
  return need === undefined ? reason : `${reason} ${need} ${have} ${unit}`
}

test.each<[string, Candidate, Partial<Job>, string | undefined]>([
  ['offline', hot('a', { health: 'offline' }), {}, 'offline'],
  ['never asked', hot('a', { health: 'unknown' }), {}, 'not_inventoried'],
  ['suspect stays', hot('a', { health: 'suspect' }), {}, undefined],
  ['breaker open', hot('a', { breaker: 'open' }), {}, 'breaker_open'],
  ['half open stays', hot('a', { breaker: 'half_open' }), {}, undefined],
  ['not reached by this request', hot('a', { isUnreached: true }), {}, 'unreachable'],
  ['offline explains why it was not reached', hot('a', { isUnreached: true, health: 'offline' }), {}, 'offline'],
  ['paused', hot('a', { admission: 'paused' }), {}, 'paused'],
  ['draining', hot('a', { admission: 'draining' }), {}, 'paused'],
  ['critical pressure', hot('a', { pressure: 'critical' }), {}, 'pressure_critical'],
  ['warned pressure stays', hot('a', { pressure: 'warn' }), {}, undefined],
  ['pinned by name', hot('a'), { pin: 'b' }, 'pinned_elsewhere'],
  ['pinned by tag', hot('a', { node: testNode('a', { tags: ['gpu'] }) }), { pin: '#gpu' }, undefined],
  ['pinned by another tag', hot('a'), { pin: '#gpu' }, 'pinned_elsewhere'],
  ['another role', hot('a', { node: testNode('a', { roles: ['embedding'] }) }), {}, 'role'],
  ['its role', hot('a', { node: testNode('a', { roles: ['chat'] }) }), {}, undefined],
  ['not in the configured list', hot('a', { node: testNode('a', { models: ['x'] }) }), {}, 'not_listed'],
  ['in the configured list', hot('a', { node: testNode('a', { models: ['M:latest'] }) }), {}, undefined],
  [
    'no vision',
    hot('a', { stored: { name: 'm', capabilities: ['chat', 'completion'] } }),
    { needs: ['chat', 'vision'] },
    'capability_missing',
  ],
  ['capabilities unknown', hot('a'), { needs: ['chat', 'vision'] }, undefined],
  ['does not fit beside itself', candidate('a', { availableGb: 1, costGb: 5, loading: 'm' }), {}, undefined],
  ['does not fit', candidate('a', { availableGb: 7.2, costGb: 18.6 }), {}, 'memory_fit 18.6 7.2 GB'],
  [
    'fits with the idle ones out',
    candidate('a', { availableGb: 7.2, costGb: 18.6, others: [{ name: 'x', memoryGb: 12, busy: false }] }),
    {},
    undefined,
  ],
  [
    'does not fit beside the busy one',
    candidate('a', { availableGb: 7.2, costGb: 18.6, others: [{ name: 'x', memoryGb: 12, busy: true }] }),
    {},
    'memory_fit 18.6 7.2 GB',
  ],
  ['loaded needs no room', hot('a', { availableGb: 0, costGb: 18.6 }), {}, undefined],
  ['memory unknown', candidate('a', { costGb: 18.6 }), {}, undefined],
  [
    'window too small and nothing to reload',
    hot('a', { canLoad: false, resident: { name: 'm', state: 'ready', contextTokens: 4096 } }),
    { contextTokens: 8192 },
    'context_too_small 8192 4096 tokens',
  ],
  [
    'window wide enough',
    hot('a', { canLoad: false, resident: { name: 'm', state: 'ready', contextTokens: 8192 } }),
    { contextTokens: 8192 },
    undefined,
  ],
  [
    'window can be reloaded',
    hot('a', { resident: { name: 'm', state: 'ready', contextTokens: 4096 } }),
    { contextTokens: 8192 },
    undefined,
  ],
])('stage 1: %s', (_what, of, job, expected) => expect(reasonFor(of, job)).toBe(expected as string))

test('a node that failed this request before is out for it', () =>
  expect(reasonFor(hot('a'), {}, ['a'])).toBe('failed_before'))

test('a model that failed this request before is out for it, others of the node are not', () => {
  expect(reasonFor(hot('a'), {}, ['a/m'])).toBe('failed_before')
  expect(reasonFor(hot('a', { model: 'M:latest' }), {}, ['a/m'])).toBe('failed_before')
  expect(reasonFor(hot('a'), {}, ['a/n', 'b/m'])).toBeUndefined()
})

test.each([
  ['the first of the chain', 0, ['completion'], undefined],
  ['a stand-in that cannot see', 1, ['completion'], 'other_kind'],
  ['one that can', 1, ['completion', 'vision', 'tools'], undefined],
  ['one of which nothing is known', 1, undefined, undefined],
] as const)('among models of one kind: %s', (_what, choice, capabilities, expected) => {
  const one = hot('a', { choice, stored: { name: 'm', ...(capabilities && { capabilities }) } })

  expect(reasonFor(one, { standInNeeds: ['chat', 'vision'] })).toBe(expected as string)
  expect(reasonFor(one, {})).toBeUndefined()
})

test('reasons are unique, and waiting can cure some of them', () => {
  expect(new Set(filters.map(({ name }) => name)).size).toBe(filters.length)
  expect(
    filters
      .filter(({ name }) => isTemporary(name))
      .map(({ name }) => name)
      .sort(),
  ).toEqual([
    'breaker_open',
    'lane_down',
    'last_hot_copy',
    'memory_fit',
    'not_inventoried',
    'offline',
    'paused',
    'pressure_critical',
    'unreachable',
  ])
})
