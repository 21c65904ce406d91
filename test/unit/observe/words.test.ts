import { expect, test } from 'bun:test'
import { counted, duration, enumerate, needHave, predicate, quantity } from '../../../src/observe/words'
import { eliminated } from './builders'

test('quantities: one decimal for GB, groups of three for counts', () => {
  expect([
    quantity(18.63, 'GB'),
    quantity(24, 'GB'),
    quantity(8_190, 'tokens'),
    quantity(1_234_567),
    quantity(999),
  ]).toEqual(['18.6 GB', '24 GB', '8 190 tokens', '1 234 567', '999'])
})

test('times as people say them', () => {
  expect([0.4, 40, 340, 9_800, 9_960, 31_200, 119_400, 120_000, 200_000].map(duration)).toEqual([
    '0 ms',
    '40 ms',
    '0.3 s',
    '9.8 s',
    '10 s',
    '31 s',
    '119 s',
    '2 min',
    '3 min 20 s',
  ])
})

test('what was compared, as far as it is known', () => {
  expect(needHave({ need: 18.63, have: 7.2, unit: 'GB' })).toBe('needs 18.6 GB, has 7.2 GB')
  expect(needHave({ need: 40_960, unit: 'tokens' })).toBe('needs 40 960 tokens')
  expect(needHave({})).toBe('')
})

test('a reason without numbers becomes words, an unknown one is shown as it is', () => {
  expect(predicate(eliminated('rig', 'offline'))).toBe('is offline')
  expect(predicate(eliminated('rig', 'moon_phase'))).toBe('was eliminated: moon_phase')
})

test('counts and lists', () => {
  expect([counted(1, 'node'), counted(2, 'node')]).toEqual(['1 node', '2 nodes'])
  expect([enumerate([]), enumerate(['a']), enumerate(['a', 'b']), enumerate(['a', 'b', 'c'])]).toEqual([
    '',
    'a',
    'a and b',
    'a, b and c',
  ])
})
