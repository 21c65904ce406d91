import { describe, expect, test } from 'bun:test'
import type { Ranked } from '../../../src/domain/placement'
import { standing } from '../../../src/observe/standing'
import { ranked } from './builders'

const inTier = (node: string, rank: number[], tier: string, terms: Ranked['terms'] = {}, model = 'm'): Ranked =>
  ranked(node, rank, { model, terms: { tier, ...terms } })

const rig = inTier('rig', [0, 0, 0, 0, 0, 0], 'resident')

describe('under residency the first number that differs is said in words:', () => {
  test.each([
    [inTier('box', [1, 0, 0, 0, 0, 0], 'joins_load'), 'box is loading m'],
    [inTier('box', [2, 0, 0, 0, 0, 0], 'cold'), 'box has to load m'],
    [inTier('box', [3, 0, 2, 2, 0, 0], 'busy'), 'box has no free slot for m'],
    [inTier('box', [4, 0, 0, 0, 2, 0], 'evicting', { evicts: 2 }), 'box has to push out 2 idle models to load m'],
    [inTier('box', [5, 0, 0, 0, 0, 0], 'blocked'), 'box cannot load m now'],
    [inTier('box', [0.5, 0, 0, 0, 0, 0], 'resident', { report: 'stale' }), 'box, of which only old news is known, has'],
    [inTier('box', [2.5, 0, 0, 0, 0, 0], 'resident', { health: 'suspect' }), 'box, which is suspect, has m in memory'],
    [inTier('box', [2.5, 0, 0, 0, 0, 0], 'resident'), 'box, whose copy is past its time, has m in memory'],
    [inTier('box', [2.5, 0, 0, 0, 0, 0], 'resident', { refuses: 'busy' }), 'box, which just refused a request, has m'],
  ])('%#', (other, sentence) => {
    expect(standing(other, rig, 'residency')).toStartWith(sentence)
    expect(standing(other, rig, 'residency')).toEndWith(', rig has it in memory and a free slot')
  })

  test.each([
    [[0, 0, 3, 9, 0, 0], 'box has 3 requests for m, rig has no request for it'],
    [[0, 0, 0, 1, 0, 0], 'box has 1 request, rig has no request'],
    [[0, 0, 0, 0, 1, 0], 'box has to push out 1 model, rig has to push out 0 models'],
    [[0, 0, 0, 0, 0, 5], 'box is at distance 5, rig is at distance 0'],
  ])('%j', (rank, sentence) => {
    expect(standing(inTier('box', rank, 'resident'), rig, 'residency')).toBe(sentence)
  })

  test('models of a chain, each by its name', () => {
    const later = inTier('box', [0, 1, 0, 0, 0, 0], 'resident', {}, 'spare')
    const passed = inTier('box', [10, 1, 0, 0, 0, 0], 'passed_over', {}, 'spare')

    expect(standing(later, rig, 'residency')).toBe(
      'box has spare, number 2 of the chain, rig has m, number 1 of the chain',
    )
    expect(standing(passed, rig, 'residency')).toBe(
      'box has only spare, and an earlier model of the chain can be had, rig has m in memory and a free slot',
    )
  })

  test('equal ones have nothing to say', () => {
    expect(standing(inTier('box', [0, 0, 0, 0, 0, 0], 'resident'), rig, 'residency')).toBeUndefined()
  })
})

describe('policies with a total say it with what it is made of:', () => {
  const total = (node: string, rank: number, terms: Ranked['terms']): Ranked => ranked(node, rank, { terms })

  test('warmth', () => {
    const best = total('rig', 65, { warmth: 40, memory_fit: 20, wait: 5 })
    const other = total('box', 30.126, { warmth: 0, memory_fit: 20, wait: 10.126 })

    expect(standing(other, best, 'warmth')).toBe(
      'box scores 30.13, rig scores 65: 40 less for warmth and 5.13 more for wait',
    )
    expect(standing(best, best, 'warmth')).toBeUndefined()
  })

  test('steady', () => {
    const best = total('rig', 1, { load: 1, kv_pressure: 0 })

    expect(standing(total('box', 3, { load: 1.5, kv_pressure: 1.5 }), best, 'steady')).toBe(
      'box costs 3, rig costs 1: 1.5 more for kv pressure and 0.5 more for load',
    )
  })

  test.each([
    ['round-robin', 7, 2, 'box was chosen more recently than rig'],
    ['least-connections', 2, 0, 'box has 2 requests, rig has no request'],
    ['power-of-two', 2, 1, 'box has 2 requests, rig has 1 request'],
    ['random', 0.75, 0.25, 'box drew 0.75, rig drew 0.25'],
  ])('%s', (policy, ours, theirs, sentence) => {
    expect(standing(total('box', ours, { x: ours }), total('rig', theirs, { x: theirs }), policy)).toBe(sentence)
  })
})
