import { expect, test } from 'bun:test'
import { createForwardTime } from '../../../src/forward-time'
import { seededRandom } from '../../../src/sim/seeded-random'

const START = 1_800_000_000_000
const HOUR = 3_600_000

/** A machine whose clock is put, and which may sleep. */
const machine = () => {
  let timeOfDay = START
  let steady = 5_000.25
  return {
    now: createForwardTime(
      () => timeOfDay,
      () => steady,
    ),
    timeOfDay: () => timeOfDay,
    pass: (ms: number) => {
      timeOfDay += ms
      steady += ms
    },
    put: (by: number) => {
      timeOfDay += by
    },
  }
}

test('it is the time of day, and a clock that is put forward or a sleep is followed at once', () => {
  const { now, pass, put } = machine()
  expect(now()).toBe(START)

  pass(1_500)
  expect(now()).toBe(START + 1_500)
  put(8 * HOUR)
  expect(now()).toBe(START + 1_500 + 8 * HOUR)
})

test('a clock that is put back does not make what is under way last longer by that', () => {
  const { now, pass, put } = machine()
  const begun = now()

  put(-HOUR)
  expect(now()).toBe(begun)
  pass(120_000)
  expect(now() - begun).toBe(108_000)
  pass(20_000)
  expect(now() - begun).toBeGreaterThanOrEqual(120_000)
})

test('it is the time of day again once that has caught up, or was put right', () => {
  const slow = machine()
  slow.now()
  slow.put(-60_000)
  slow.now()
  for (let passed = 0; passed < 600_000; passed += 1_000) {
    slow.pass(1_000)
    slow.now()
  }
  expect(slow.now()).toBe(slow.timeOfDay())

  const righted = machine()
  righted.now()
  righted.put(-HOUR)
  righted.now()
  righted.put(HOUR + 5)
  expect(righted.now()).toBe(righted.timeOfDay())
  // Put back once more: the time in between does not count twice.
  righted.pass(50_000)
  const before = righted.now()
  righted.put(-HOUR)
  expect(righted.now()).toBe(before)
})

test('whatever happens to the clock it never goes back, gives whole milliseconds, and is never behind', () => {
  const random = seededRandom(3)
  const { now, pass, put, timeOfDay } = machine()
  let last = now()
  for (let i = 0; i < 5_000; i += 1) {
    pass(Math.floor(random.next() * 5_000))
    if (random.next() < 0.02) put(Math.floor((random.next() - 0.5) * HOUR))

    const time = now()
    expect(time).toBeGreaterThanOrEqual(Math.max(last, timeOfDay()))
    expect(Number.isInteger(time)).toBe(true)
    last = time
  }
})
