import { expect, test } from 'bun:test'
import { nearestNames } from '../../../src/catalog/nearest'
import { startWatch } from '../../support/stopwatch'

test('a name that is too long to be a typing error is compared with nothing', () => {
  const names = Array.from({ length: 200 }, (_, index) => `model-${index}:7b`)
  const taken = startWatch()

  expect(nearestNames('a'.repeat(1_000_000), names)).toEqual([])
  expect(taken()).toBeLessThan(50)
})
