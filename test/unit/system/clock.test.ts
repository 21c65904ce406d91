import { expect, setSystemTime, test } from 'bun:test'
import { systemClock } from '../../../src/system'

test('a long deadline does not fire early because the time of day was corrected', async () => {
  let fired = 0
  const timer = systemClock.setTimeout(() => fired++, 10_000)

  setSystemTime(Date.now() + 3_600_000)
  await Bun.sleep(600)
  setSystemTime()
  systemClock.clearTimeout(timer)

  expect(fired).toBe(0)
})

test('a time of day that is put back does not take the time back', () => {
  const before = systemClock.now()

  setSystemTime(before - 3_600_000)
  const after = systemClock.now()
  setSystemTime()

  expect(after - before).toBeGreaterThanOrEqual(0)
  expect(after - before).toBeLessThan(1_000)
})
