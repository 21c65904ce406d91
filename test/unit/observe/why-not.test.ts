import { expect, test } from 'bun:test'
import { whyNot } from '../../../src/observe/why-not'
import { eliminated, ranked, record, round, start, tooBig } from './builders'

const given = record({
  rounds: [
    round(
      [
        ranked('rig', [0, 0, 0], { terms: { tier: 'resident', in_flight: 0, free: 2 } }),
        ranked('box', [0, 0, 3], { terms: { tier: 'resident', in_flight: 3, free: 1 } }),
        ranked('twin', [0, 0, 0], { terms: { tier: 'resident', in_flight: 0, free: 2 } }),
        ranked('cold', [2, 0, 0], { terms: { tier: 'cold', in_flight: 0, free: 2, memory_fit: 'unknown' } }),
        tooBig('pi'),
        eliminated('old', 'offline'),
      ],
      start('rig'),
    ),
  ],
})

test('a ranked node: the signed difference of every term that differs', () => {
  expect(whyNot(given, 'box')).toEqual({
    kind: 'ranked',
    node: 'box',
    differences: [
      { term: 'in_flight', chosen: 0, other: 3, difference: 3 },
      { term: 'free', chosen: 2, other: 1, difference: -1 },
    ],
    sentence: 'box has 3 requests for qwen3:8b, rig has no request for it',
  })
})

test('terms that are words are told side by side; a missing number counts as 0', () => {
  expect(whyNot(given, 'cold')).toMatchObject({
    differences: [
      { term: 'tier', chosen: 'resident', other: 'cold' },
      { term: 'memory_fit', chosen: 0, other: 'unknown' },
    ],
    sentence: 'cold has to load qwen3:8b, rig has it in memory and a free slot',
  })
})

test('an equal node is called equal, with what goes first among equals', () => {
  expect(whyNot(given, 'twin').sentence).toBe(
    'twin is equal to rig, and of equals the one goes first that was chosen longest ago',
  )
})

test('an eliminated node: the reason with the numbers that were compared', () => {
  expect(whyNot(given, 'pi')).toMatchObject({
    kind: 'eliminated',
    node: 'pi',
    reason: 'memory_fit',
    need: 18.63,
    have: 7.2,
    unit: 'GB',
    sentence: 'pi needs 18.6 GB, has 7.2 GB',
  })
  expect(whyNot(given, 'old').sentence).toBe('old is offline')
})

test('the chosen node, an unknown node, and a node beyond those kept', () => {
  const cut = record({ rounds: [round([ranked('rig', [0])], start('rig'), { more: { ranked: 3, eliminated: {} } })] })

  expect(whyNot(given, 'rig')).toMatchObject({ kind: 'chosen', sentence: 'it did go to rig' })
  expect(whyNot(given, 'mars')).toMatchObject({
    kind: 'unknown',
    sentence: 'mars was not considered: it does not list the model',
  })
  expect(whyNot(cut, 'mars').sentence).toBe('mars is not among the best candidates that the record keeps')
  expect(whyNot(record(), 'rig').sentence).toBe('the request was never placed')
})

test('where a node stands once per model of a chain, the ranked one counts', () => {
  const chain = record({
    rounds: [
      round([ranked('rig', [0]), ranked('box', [1]), eliminated('box', 'memory_fit', { model: 'big' })], start('rig')),
    ],
  })

  expect(whyNot(chain, 'box').kind).toBe('ranked')
})

test('while nothing is chosen there is nothing to compare with', () => {
  const waiting = record({ rounds: [round([ranked('rig', [3])], { kind: 'wait', reason: 'held' })] })

  expect(whyNot(waiting, 'rig')).toMatchObject({
    kind: 'ranked',
    differences: [],
    sentence: 'rig could serve it, but none was free',
  })
})
