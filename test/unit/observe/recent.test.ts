import { expect, test } from 'bun:test'
import { createRecent } from '../../../src/observe/recent'

test('the newest stay, oldest first, whatever went before', () => {
  const recent = createRecent<number>(3)
  for (let i = 0; i < 10; i++) recent.set(`k${i}`, i)

  expect([...recent.values()]).toEqual([7, 8, 9])
  expect(recent.get('k9')).toBe(9)
  expect(recent.get('k6')).toBeUndefined()
})

test('a hundred thousand entries through a small one take no time to speak of', () => {
  const recent = createRecent<number>(2_000)
  const startedAt = performance.now()
  for (let i = 0; i < 100_000; i++) recent.set(`k${i}`, i)

  expect(performance.now() - startedAt).toBeLessThan(500)
})
