import { expect, test } from 'bun:test'
import { createLatest } from '../../../src/learning/learned'

const latest = (limit: number, keys: string) => {
  const map = createLatest<string>(limit)
  for (const key of keys) map.set(key, key.toUpperCase())
  return map
}

test('one too many drops what was set longest ago, not what came first', () => {
  const map = latest(3, 'abcad')

  expect(map.size).toBe(3)
  expect(map.get('b')).toBeUndefined()
  expect(map.get('a')).toBe('A')
})

test('values stand in the order in which they were last set', () => {
  expect([...latest(9, 'abcab').values()]).toEqual(['C', 'A', 'B'])
})

test('what is set again has its new value', () => {
  const map = latest(9, 'ab')
  map.set('a', 'other')

  expect(map.get('a')).toBe('other')
  expect(map.size).toBe(2)
})

test('what is deleted may come again', () => {
  const map = latest(9, 'abc')
  map.deleteWhere((value, key) => key === 'a' || value === 'C')
  map.set('a', 'A')

  expect([...map.values()]).toEqual(['B', 'A'])
})
