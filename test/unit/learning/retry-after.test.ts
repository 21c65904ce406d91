import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type QueueState, retryAfterSeconds } from '../../../src/learning/retry-after'

const state = (over: Partial<QueueState>): QueueState => ({ running: [], meanMs: 10_000, slots: 1, ahead: 0, ...over })
const elapsed = (...ms: number[]) => ms.map((elapsedMs) => ({ elapsedMs }))

describe('the time until a place is free', () => {
  const table: readonly (readonly [string, Partial<QueueState>, number])[] = [
    ['a free slot and nobody ahead', {}, 1],
    ['the rest of what runs', { running: elapsed(4_000) }, 6],
    ['the shortest rest of several', { running: elapsed(1_000, 7_000, 3_000), slots: 3 }, 3],
    ['a tenth of the mean when it should have ended', { running: elapsed(60_000) }, 1],
    ['the same, of a long mean', { running: elapsed(900_000), meanMs: 300_000 }, 30],
    ['whole services for those ahead, shared by the slots', { running: elapsed(0, 0), slots: 2, ahead: 4 }, 30],
    ['a slot is free, others are ahead', { running: elapsed(0), slots: 2, ahead: 1 }, 5],
    ['never more than ten minutes', { ahead: 100_000 }, 600],
    ['nothing measured', { meanMs: 0, running: elapsed(5), ahead: 9 }, 1],
    ['no slots counts as one', { slots: 0, ahead: 2 }, 20],
  ]
  for (const [name, over, seconds] of table) {
    test(name, () => expect(retryAfterSeconds(state(over))).toBe(seconds))
  }
})

const anyNumber = fc.double({ min: -1e9, max: 1e9 })
const anyState = fc.record({
  running: fc.array(fc.record({ elapsedMs: anyNumber }), { maxLength: 20 }),
  meanMs: anyNumber,
  slots: fc.integer({ min: -2, max: 64 }),
  ahead: fc.integer({ min: -2, max: 10_000 }),
})

test('it is always an integer from 1 to 600', () => {
  fc.assert(
    fc.property(anyState, (given) => {
      const seconds = retryAfterSeconds(given)
      return Number.isInteger(seconds) && seconds >= 1 && seconds <= 600
    }),
  )
})

test('more requests ahead never shorten it, more progress never lengthens it', () => {
  fc.assert(
    fc.property(anyState, fc.nat(1_000), (given, more) => {
      const further = given.running.map(({ elapsedMs }) => ({ elapsedMs: elapsedMs + more }))
      const now = retryAfterSeconds(given)
      return (
        retryAfterSeconds({ ...given, ahead: given.ahead + more }) >= now &&
        retryAfterSeconds({ ...given, running: further }) <= now
      )
    }),
  )
})
