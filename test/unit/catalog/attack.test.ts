import { expect, test } from 'bun:test'
import { nearestNames } from '../../../src/catalog/nearest'

test('a name that is too long to be a typing error is compared with nothing', () => {
  const names = Array.from({ length: 200 }, (_, index) => `model-${index}:7b`)
  const startedAt = performance.now()

  expect(nearestNames('a'.repeat(1_000_000), names)).toEqual([])
  expect(performance.now() - startedAt).toBeLessThan(50)
})
