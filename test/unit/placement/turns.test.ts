import { describe, expect, test } from 'bun:test'
import type { Candidate } from '../../../src/domain/placement'
import { isDue, isOnlyInUse, pushesOut, waitsForOthers } from '../../../src/placement/turns'
import { candidate, hot, NOW } from '../../support/candidates'

const busy = { name: 'other', memoryGb: 5, busy: true }
const idle = { ...busy, busy: false }
/** 8 GB, of which another model has 5; this one needs 5 as well. */
const small = (change: Partial<Candidate> = {}): Candidate =>
  candidate('a', { availableGb: 3, costGb: 5, totalGb: 8, others: [busy], ...change })
const byRequest = { canLoad: false, loadsOnRequest: true }

describe('a load is due', () => {
  test.each([
    ['after the time that the configuration gives', 15_000, undefined, true],
    ['and not before', 14_999, undefined, false],
    ['not while the load before it is young', 60_000, { at: NOW - 14_999, tookMs: 1_000 }, false],
    ['nor until that has paid off', 60_000, { at: NOW - 39_999, tookMs: 40_000 }, false],
    ['once it has', 60_000, { at: NOW - 40_000, tookMs: 40_000 }, true],
  ] as const)('%s', (_what, waitedMs, last, due) => {
    expect(isDue(NOW - waitedMs, last, 15_000, NOW)).toBe(due)
  })
})

describe('what a load pushes out', () => {
  test.each([
    ['what it names', candidate(), ['other'], true],
    ['nothing where there is nothing', candidate(), [], false],
    ['nothing where there is room', small({ availableGb: 6, others: [idle] }), [], false],
    ['perhaps something where nobody knows the memory', candidate('a', { others: [idle] }), [], true],
    ['perhaps something where the engine loads by itself', small({ ...byRequest, availableGb: 6 }), [], true],
  ])('%s', (_what, one, evicts, pushes) => {
    expect(pushesOut(one, evicts, NOW)).toBe(pushes)
  })
})

describe('a load waits for nothing but other answers', () => {
  test.each([
    ['where another model answers', small(), true],
    ['where its memory is not known', small({ availableGb: undefined, costGb: undefined } as never), true],
    ['where the engine loads by itself', small(byRequest), true],
    [
      'where its own copy has too small a window',
      hot('a', { inFlight: 1, resident: { name: 'm', state: 'loading' } }),
      true,
    ],
    ['not where the other is idle', small({ others: [idle] }), false],
    ['not where it would not fit either', small({ costGb: 9 }), false],
    ['not where something is being loaded', small({ loading: 'third' }), false],
    ['not where the model is there', hot('a', { others: [busy] }), false],
  ])('%s', (_what, one, waits) => {
    expect(waitsForOthers(one, {}, NOW)).toBe(waits)
  })
})

describe('memory is only in use', () => {
  test.each([
    ['by an answer', small(), true],
    ['by another load', small({ loading: 'third' }), true],
    ['not by this load', small({ loading: 'm' }), false],
    ['not where the node is too small', small({ loading: 'third', costGb: 9 }), false],
  ])('%s', (_what, one, inUse) => {
    expect(isOnlyInUse(one, {}, NOW)).toBe(inUse)
  })
})
