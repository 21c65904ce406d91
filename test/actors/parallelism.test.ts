import { describe, expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { learnFrom } from '../../src/learning/learn'
import { createSamples } from '../../src/learning/service-times'
import { host } from '../support/host'
import { runAtOnce } from '../support/serial-engine'

const times = (index: number) => ({ prefillMs: 150 + ((index * 37) % 100), decodeMs: 2_000 + ((index * 977) % 2_000) })

/** In memory, and not a word about how many it runs. */
const silent = (memoryGb?: number): NodeReport => ({
  models: [{ name: 'm' }],
  resident: [{ name: 'm', state: 'ready', memoryGb: 4 }],
  canLoad: false,
  canUnload: false,
  ...(memoryGb === undefined ? {} : { memoryGb }),
})

const learning = async (
  reports: Readonly<Record<string, NodeReport>>,
  slots: Readonly<Record<string, number>>,
  change: Parameters<typeof host>[1] = {},
) => {
  const samples = createSamples()
  const bench = host(reports, { samples, record: learnFrom(samples).hear, ...change })
  const engines = runAtOnce(bench.gateway, bench.clock, slots, times)
  await bench.ready()
  const queue = (node: string) => bench.fleet.queues().find((one) => one.node === node)
  /** So many at a time until that many more have been answered. */
  const answer = async (count: number, atOnce: number, job: Parameters<typeof bench.submit>[0] = {}) => {
    const before = bench.settled().length
    let asked = 0
    while (bench.settled().length < before + count) {
      while (asked < count && asked - (bench.settled().length - before) < atOnce) {
        bench.submit(job)
        asked += 1
      }
      await bench.clock.advance(50)
    }
  }
  return { ...bench, samples, engines, queue, answer }
}

describe('BL-Q06 memory says 8, the engine runs 2', () => {
  test('is learned within 20 requests; the rest waits here, where another node can take it', async () => {
    const bench = await learning({ a: silent(40) }, { a: 2 }, { describe: () => ({ kind: 'openai' }) })
    expect(bench.queue('a')).toMatchObject({ slots: 8, slotsBasis: 'memory' })
    for (let i = 0; i < 16; i++) bench.submit()
    await bench.clock.advance(10)
    expect(bench.engines.inside('a')).toBe(8)

    await bench.clock.advance(60_000)
    expect(bench.settled()).toHaveLength(16)
    expect(bench.queue('a')).toMatchObject({ slots: 2, slotsBasis: 'learned', parallelism: { together: 2 } })
    expect(bench.queue('a')?.parallelism?.stood).toBeGreaterThanOrEqual(6)

    bench.engines.reset('a')
    for (let i = 0; i < 6; i++) bench.submit()
    await bench.clock.advance(100)
    expect(bench.engines.peak('a')).toBe(2)
    expect(bench.fleet.overview()).toMatchObject({ inFlight: 2, waiting: 4 })
    await bench.clock.advance(60_000)
    bench.expectIdle()
  })

  test('what waits goes to the other node as soon as that has a slot', async () => {
    const reports = { a: silent(40), b: { ...silent(), resident: [{ name: 'm', state: 'ready' as const, slots: 1 }] } }
    const bench = await learning(reports, { a: 2, b: 1 }, { describe: () => ({ kind: 'openai' }) })
    await bench.answer(40, 16)
    expect(bench.queue('a')).toMatchObject({ slots: 2 })

    const before = bench.engines.sent('b')
    for (let i = 0; i < 9; i++) bench.submit()
    await bench.clock.advance(100)
    // Two, or one more that is tried.
    expect(bench.engines.inside('a')).toBeLessThanOrEqual(3)
    expect(bench.engines.inside('b')).toBe(1)
    await bench.clock.advance(60_000)
    expect(bench.engines.sent('b') - before).toBeGreaterThanOrEqual(3)
    bench.expectIdle()
  })
})

describe('an engine that says nothing', () => {
  test.each([
    ['residency', 4],
    ['warmth', 4],
    ['steady', 2],
  ] as const)('starts at one and is found to run more, one at a time: %s, %d', async (use, slots) => {
    const policy = { use } as never
    const bench = await learning({ a: silent() }, { a: slots }, { describe: () => ({ kind: 'ollama' }), policy })
    expect(bench.queue('a')).toMatchObject({ slots: 1, slotsBasis: 'default' })

    await bench.answer(150, 12)
    expect(bench.queue('a')).toMatchObject({ slots, slotsBasis: 'learned' })
    expect(bench.engines.peak('a')).toBeLessThanOrEqual(slots + 1)
    bench.expectIdle()
  })

  test('and runs one is tried ever more rarely, never with more than one beyond', async () => {
    const bench = await learning({ a: silent() }, { a: 1 }, { describe: () => ({ kind: 'ollama' }) })
    await bench.answer(200, 6)
    const tried = bench
      .of('request.placed')
      .filter(({ verdicts }) => verdicts.some((one) => one.verdict === 'ranked' && one.terms.trial !== undefined))

    expect(bench.queue('a')).toMatchObject({ slots: 1, slotsBasis: 'learned' })
    expect(bench.engines.peak('a')).toBe(2)
    expect(tried.length).toBeGreaterThan(1)
    expect(tried.length).toBeLessThanOrEqual(6)
    bench.expectIdle()
  })

  test('is not tried while nobody waits, nor with what comes whole or is critical', async () => {
    const bench = await learning({ a: silent() }, { a: 4 }, { describe: () => ({ kind: 'ollama' }) })
    await bench.answer(40, 1)
    await bench.answer(20, 6, { stream: false })
    await bench.answer(20, 6, { priority: 'critical' })

    expect(bench.engines.peak('a')).toBe(1)
  })

  test('is not tried where the configuration or the engine gives a number', async () => {
    const reported = { ...silent(), resident: [{ name: 'm', state: 'ready' as const, slots: 1 }] }
    const describe = (name: string) => ({ kind: 'ollama' as const, ...(name === 'a' ? { maxConcurrency: 2 } : {}) })
    const bench = await learning({ a: silent(), b: reported }, { a: 8, b: 8 }, { describe })
    await bench.answer(120, 12)

    expect([bench.engines.peak('a'), bench.engines.peak('b')]).toEqual([2, 1])
    expect(bench.queue('a')?.slotsBasis).toBe('configured')
    expect(bench.queue('b')?.slotsBasis).toBe('reported')
  })

  test('a limit that holds no longer is unlearned, up and down', async () => {
    const bench = await learning({ a: silent(40) }, { a: 2 }, { describe: () => ({ kind: 'openai' }) })
    await bench.answer(24, 12)
    expect(bench.queue('a')?.slots).toBe(2)

    bench.engines.setSlots('a', 4)
    await bench.answer(150, 12)
    expect(bench.queue('a')?.slots).toBe(4)

    bench.engines.setSlots('a', 2)
    await bench.answer(60, 12)
    expect(bench.queue('a')?.slots).toBe(2)
  })

  test('a node that is cold elsewhere is loaded rather than tried', async () => {
    const cold: NodeReport = { models: [{ name: 'm', sizeGb: 4 }], resident: [], canLoad: true, canUnload: true }
    const bench = await learning({ a: silent() }, { a: 4 }, { describe: () => ({ kind: 'ollama' }) })
    await bench.answer(20, 1)
    bench.gateway.reports.set('b', { ...cold, memoryGb: 16 })
    bench.fleet.addNode({ ...bench.fleet.descriptions()[0]!, name: 'b', url: 'http://b' })
    await bench.clock.advance(3_000)
    bench.submit()
    bench.submit()
    await bench.clock.advance(10)

    expect(bench.gateway.loads.map(({ node }) => node)).toEqual(['b'])
    expect(bench.engines.inside('a')).toBe(1)
  })
})

test('what was learned shows for the node, with its counts', async () => {
  const bench = await learning({ a: silent() }, { a: 1 }, { describe: () => ({ kind: 'ollama' }) })
  await bench.answer(40, 3)
  const { samples, models } = bench.fleet.learned('a') ?? { samples: 0, models: [] }

  expect(samples).toBe(40)
  expect(models[0]).toMatchObject({ model: 'm', service: { samples: 40 }, prefill: { samples: 40 } })
  expect(models[0]?.decode[0]).toMatchObject({ concurrency: 1, samples: 40 })
  // Whoever was the try stood inside the engine, which is no service.
  expect(models[0]?.service?.meanMs).toBeLessThan(4_500)
  expect(models[0]?.service?.p75Ms).toBeLessThan(4_500)
  expect(bench.fleet.learned('nobody')).toBeUndefined()
})

test('a prompt is estimated by what the engines counted before', async () => {
  const bench = await learning({ a: silent() }, { a: 1 })
  const prompt = { promptBytes: 800, promptTokens: { value: 200, basis: 'estimated' as const } }
  bench.submit(prompt)
  await bench.clock.advance(10_000)
  bench.submit(prompt)
  await bench.clock.advance(10_000)

  expect(bench.of('request.arrived').map(({ job }) => job.promptTokens)).toEqual([
    { value: 200, basis: 'estimated' },
    { value: 100, basis: 'estimated' },
  ])
})
