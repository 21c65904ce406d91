import { expect, test } from 'bun:test'
import { concurrencyOf, nearestSpeed, rateOf, type Speed, withMeasured } from '../../../src/learning/speed'

test('a long request weighs more than a short one', () => {
  const speed = withMeasured(withMeasured(undefined, 1_000, 1_000), 10, 1_000)

  expect(rateOf(speed)).toEqual({ perSecond: 802, samples: 2 })
})

test.each([
  ['too few tokens', 3, 100],
  ['no time', 100, 0],
  ['nonsense', Number.NaN, 100],
])('%s say nothing', (_what, tokens, ms) => {
  const before: Speed = { tokens: 50, ms: 1_000, samples: 9 }

  expect(withMeasured(before, tokens, ms)).toBe(before)
  expect(withMeasured(undefined, tokens, ms)).toBeUndefined()
})

test('a mean concurrency is one of 1 to 8', () => {
  expect([0, 1, 1.4, 1.6, 7.7, 30].map(concurrencyOf)).toEqual([1, 1, 1, 2, 8, 8])
})

test('the speed at a concurrency that was never measured is that of the nearest, of two that of fewer at once', () => {
  const at = (tokens: number): Speed => ({ tokens, ms: 1_000, samples: 1 })
  const speeds = { '1': at(40), '3': at(25), '8': at(10) }

  expect([1, 2, 3, 4, 6, 8].map((concurrency) => nearestSpeed(speeds, concurrency)?.tokens)).toEqual([
    40, 40, 25, 25, 10, 10,
  ])
  expect(nearestSpeed(undefined, 1)).toBeUndefined()
})
