import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createParallelism, MAX_LEARNED } from '../../../src/learning/parallelism'
import { fifoEngine } from './fifo-engine'

const even = () => ({ prefillMs: 200, decodeMs: 3_000 })
/** Repeats, and no two neighbours are alike. */
const uneven = (index: number) => ({ prefillMs: 100 + ((index * 37) % 200), decodeMs: 1_500 + ((index * 977) % 4_000) })

describe('what an engine really runs at once', () => {
  test.each([1, 2, 3, 4])('is learned when it is thought to run 8: %d', async (slots) => {
    const engine = fifoEngine(slots, uneven)
    await engine.keepBusy(20, 8)

    expect(engine.view()).toMatchObject({ slots, together: slots })
    expect(engine.view()?.stood).toBeGreaterThanOrEqual(6)
  })

  test('BL-Q06 two are learned before 16 requests are over, and no more are sent at once from then on', async () => {
    const engine = fifoEngine(2, even)
    await engine.keepBusy(16, 8)
    const { sent } = engine.state
    engine.state.peak = 0
    await engine.keepBusy(sent + 20, 8)

    expect(sent).toBe(16)
    expect(engine.state.peak).toBe(2)
  })

  test('is not made less by prompts that take long and answers that are short', async () => {
    const engine = fifoEngine(8, (index) => ({ prefillMs: 2_000 + ((index * 37) % 900), decodeMs: 300 }))
    await engine.keepBusy(200, 8)

    expect(engine.view()?.slots).toBeUndefined()
  })

  test('is not made less where everything runs', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 50, max: 4_000 }), fc.integer({ min: 50, max: 9_000 })), { minLength: 8 }),
        async (times) => {
          const engine = fifoEngine(8, (index) => {
            const [prefillMs, decodeMs] = times[index % times.length] ?? [100, 100]
            return { prefillMs, decodeMs }
          })
          await engine.keepBusy(120, 8)
          const learned = engine.view()?.slots
          expect(learned === undefined || learned >= 6).toBe(true)
        },
      ),
      { numRuns: 60, seed: 7 },
    ))

  test('nothing is concluded from answers that come whole', async () => {
    const engine = fifoEngine(2, even, false)
    await engine.keepBusy(60, 8)

    expect(engine.view()).toMatchObject({ overlapping: 0, stood: 0 })
    expect(engine.view()?.slots).toBeUndefined()
  })
})

describe('one more than is known is tried now and then', () => {
  test.each([2, 4, 8])('from one at a time up to what runs: %d', async (slots) => {
    const engine = fifoEngine(slots, uneven)
    await engine.keepBusy(150, 1, true)

    expect(engine.view()?.slots).toBe(slots)
  })

  test('an engine that runs one at a time is bothered ever more rarely', async () => {
    const engine = fifoEngine(1, even)
    let tries = 0
    let inside = 0
    const count = () => {
      if (engine.state.inside > 1 && inside <= 1) tries += 1
      inside = engine.state.inside
    }
    const work = engine.keepBusy(400, 1, true)
    for (let i = 0; i < 20_000 && engine.state.ended < 400; i++) {
      count()
      await engine.clock.advance(100)
    }
    await work

    expect(engine.view()?.slots).toBe(1)
    expect(tries).toBeGreaterThan(1)
    expect(tries).toBeLessThanOrEqual(6)
  })

  test('a limit that holds no longer is unlearned', async () => {
    const engine = fifoEngine(2, uneven)
    await engine.keepBusy(20, 8, true)
    expect(engine.view()?.slots).toBe(2)

    engine.state.slots = 4
    await engine.keepBusy(120, 8, true)
    expect(engine.view()?.slots).toBe(4)

    engine.state.slots = 1
    await engine.keepBusy(220, 8, true)
    expect(engine.view()?.slots).toBe(1)
  })

  test('a try that breaks off, that was never sent, or that somebody made room for, says nothing', () => {
    const estimate = createParallelism()
    for (let i = 0; i < 5; i++) estimate.ended(`before-${i}`)
    expect(estimate.view()).toMatchObject({ mayTry: true, trying: false })

    estimate.trying('alone after all')
    expect(estimate.view()).toMatchObject({ mayTry: false, trying: true })
    estimate.sent('placed before it', 1)
    estimate.sent('alone after all', 1)
    expect(estimate.view()).toMatchObject({ mayTry: true, trying: false })

    estimate.trying('never sent')
    for (const other of ['a', 'b']) estimate.sent(other, 1)
    expect(estimate.view()).toMatchObject({ mayTry: true, trying: false })

    estimate.trying()
    estimate.sent('placed before it', 1)
    estimate.sent('second', 2)
    estimate.ended('second')
    expect(estimate.view()).toMatchObject({ mayTry: false, trying: false })
    expect(estimate.view().slots).toBeUndefined()
    for (let i = 0; i < 5; i++) estimate.ended(`after-${i}`)
    expect(estimate.view().mayTry).toBe(true)
  })

  test('never beyond what is sane', () => {
    const estimate = createParallelism({ slots: MAX_LEARNED, tryAfter: 0 })
    estimate.observe({ request: 'r', overlapped: true, together: MAX_LEARNED + 3 })

    expect(estimate.view()).toMatchObject({ slots: MAX_LEARNED, mayTry: false })
  })
})

test('waiting inside the engine is no service: it counts from the previous completion', async () => {
  const engine = fifoEngine(1, even)
  for (let i = 0; i < 3; i++) engine.send()
  await engine.clock.advance(20_000)

  expect([...engine.waits.values()]).toEqual([0, 3_200, 6_400])
})
