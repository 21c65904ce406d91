import { expect, test } from 'bun:test'
import { array, assert, integer, property, tuple } from 'fast-check'
import { selectBest } from '../../../src/domain/select-best'

type Item = readonly [rank: number, id: number]
const byRank = (a: Item, b: Item): number => a[0] - b[0]

test('the first are those of a stable sort, and nothing is lost', () => {
  const items = array(tuple(integer({ min: 0, max: 5 }), integer()), { maxLength: 40 })
  assert(
    property(items, integer({ min: 1, max: 10 }), (given, count) => {
      const selected = selectBest(given, count, byRank)

      expect(selected.slice(0, count)).toEqual([...given].sort(byRank).slice(0, count))
      expect([...selected].sort(byRank).map(String).sort()).toEqual(given.map(String).sort())
    }),
  )
})

test('without a count it sorts', () => {
  expect(selectBest([3, 1, 2], Number.POSITIVE_INFINITY, (a, b) => a - b)).toEqual([1, 2, 3])
})
