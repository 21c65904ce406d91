import { describe, expect, test } from 'bun:test'
import { Buffered } from '../../src/http/buffered'

const MB = 1_000_000

const refusal = expect.objectContaining({ code: 'no_capacity' })

describe('the bytes of all bodies', () => {
  test('are bounded, and what is refused is not counted', () => {
    const buffered = new Buffered({ maxBufferedBytes: 10 * MB })
    buffered.take(6 * MB, 0)

    expect(() => buffered.take(5 * MB, 0)).toThrow(refusal)
    expect(buffered.bytes).toBe(6 * MB)
    buffered.take(4 * MB, 0)
    buffered.give(6 * MB)
    expect(buffered.bytes).toBe(4 * MB)
  })

  test('let a body pass that is alone, whatever it grows to', () => {
    const buffered = new Buffered({ maxBufferedBytes: 10 * MB })
    buffered.take(10 * MB, 0)
    buffered.take(3 * MB, 10 * MB)

    expect(buffered.bytes).toBe(13 * MB)
    expect(() => buffered.take(1, 0)).toThrow(refusal)
  })

  test('leave an eighth to small bodies, which large ones do not get', () => {
    const buffered = new Buffered({ maxBufferedBytes: 8 * MB })
    buffered.take(7 * MB, 0)
    buffered.take(MB, 0)

    let small = 0
    expect(() => {
      for (; ; small += 1) buffered.take(64_000, 0)
    }).toThrow(refusal)

    expect(small).toBe(Math.floor(MB / 64_000))
    expect(() => buffered.take(64_001, 0)).toThrow(refusal)
    // One that has grown out of it counts as large.
    expect(() => buffered.take(1_000, 63_500)).toThrow(refusal)
  })

  test('follow a limit that changes', () => {
    const limits = { maxBufferedBytes: 4 * MB }
    const buffered = new Buffered(limits)
    buffered.take(3 * MB, 0)
    limits.maxBufferedBytes = 2 * MB

    expect(() => buffered.take(MB, 0)).toThrow('2 MB')
    limits.maxBufferedBytes = 4 * MB
    buffered.take(MB, 0)
  })
})
