import { expect, test } from 'bun:test'
import { createCoarseTimers } from '../../../src/coarse-timers'

/** A wall of its own: ticks run by hand. */
const wall = () => {
  let now = 1_000_123
  let ticking: (() => void) | undefined
  const timers = createCoarseTimers(
    () => now,
    (run) => {
      ticking = run
      return () => {
        ticking = undefined
      }
    },
  )
  const pass = (ms: number) => {
    for (const end = now + ms; now < end; ) {
      now = Math.min(end, now + 500)
      ticking?.()
    }
  }
  return { timers, pass, isTicking: () => ticking !== undefined }
}

test('a deadline fires once, never early and at most one tick late', () => {
  const { timers, pass } = wall()
  let fired = 0
  timers.set(() => fired++, 10_000)

  pass(9_999)
  expect(fired).toBe(0)
  pass(1_001)
  expect(fired).toBe(1)
  pass(60_000)
  expect(fired).toBe(1)
})

test('a cleared deadline does not fire, not even when another of its tick clears it', () => {
  const { timers, pass } = wall()
  const fired: string[] = []
  const gone = timers.set(() => fired.push('gone'), 10_000)
  expect(timers.clear(gone)).toBe(true)
  let second: unknown
  timers.set(() => {
    fired.push('first')
    timers.clear(second)
  }, 12_000)
  second = timers.set(() => fired.push('second'), 12_000)

  pass(20_000)
  expect(fired).toEqual(['first'])
})

test('one that throws takes no other of its tick with it', () => {
  const { timers, pass } = wall()
  const fired: string[] = []
  timers.set(() => {
    throw new Error('broken')
  }, 10_000)
  timers.set(() => fired.push('other'), 10_000)

  expect(() => pass(10_500)).toThrow('broken')
  pass(500)
  expect(fired).toEqual(['other'])
})

test('nothing ticks while nothing waits, and what is not ours is left alone', () => {
  const { timers, pass, isTicking } = wall()
  expect(isTicking()).toBe(false)
  timers.set(() => {}, 10_000)
  expect(isTicking()).toBe(true)
  pass(11_000)
  expect(isTicking()).toBe(false)
  expect(timers.clear(setTimeout(() => {}, 0))).toBe(false)
})
