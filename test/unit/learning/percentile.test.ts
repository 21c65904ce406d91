import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createWindow, p75Of, WINDOW } from '../../../src/learning/percentile'

const filled = (values: readonly number[]) => {
  const window = createWindow()
  for (const value of values) window.add(value)
  return window
}

test('the 75th percentile is element floor(0.75 n) of the sorted latest values', () => {
  expect(filled([5, 1, 4, 2]).p75()).toBe(5)
  expect(filled([5, 1, 4, 2, 3]).p75()).toBe(4)
  expect(filled([9_999, ...Array.from({ length: WINDOW }, (_, i) => i)]).p75()).toBe(375)
  expect(createWindow().p75()).toBeUndefined()
})

test('a window that goes on from a summary has the same percentile, the same weight and the same ends', () =>
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 700 }), (values) => {
      const before = filled(values)
      const summary = before.summary()
      const after = createWindow(JSON.parse(JSON.stringify(summary)))

      expect(summary.ranks.length).toBeLessThanOrEqual(33)
      expect(p75Of(summary)).toBe(before.p75())
      expect(after.p75()).toBe(before.p75())
      expect(after.size).toBe(before.size)
      const kept = [...values.slice(-WINDOW)].sort((a, b) => a - b)
      expect([summary.ranks[0], summary.ranks.at(-1)]).toEqual([kept[0], kept.at(-1)])
    }),
  ))

test('what came before a restart goes as new values come', () => {
  const after = createWindow(filled(Array.from({ length: WINDOW }, () => 10)).summary())
  for (let i = 0; i < WINDOW; i++) after.add(20)

  expect(after.p75()).toBe(20)
  expect(after.summary().ranks[0]).toBe(20)
})
