import { describe, expect, test } from 'bun:test'
import { ema } from '../../../src/learning/ema'
import { type Learned, MAX_PAIRS } from '../../../src/learning/learned'
import { createSamples } from '../../../src/learning/service-times'

const served = (durationMs: number, node = 'rig', model = 'm') => ({ node, model, durationMs, firstByteMs: 1 })

test('the first value is the mean, later ones move it by a fifth of the distance', () => {
  expect([100, 200, 200].reduce<number | undefined>((mean, value) => ema(mean, value), undefined)).toBe(136)
})

describe('service times', () => {
  test('are known per node:model once measured, with the number of samples', () => {
    const samples = createSamples()
    samples.addService(served(1_000))
    samples.addService(served(2_000))
    samples.addService(served(9_000, 'rig', 'other'))

    expect(samples.service('rig', 'm')).toEqual({ meanMs: 1_200, samples: 2 })
    expect(samples.service('box', 'm')).toBeUndefined()
  })

  test('spellings of one model are one pair', () => {
    const samples = createSamples()
    samples.addService(served(1_000, 'rig', 'Llava:latest'))
    samples.addService(served(2_000, 'rig', 'llava'))

    expect(samples.service('rig', 'LLaVA')).toEqual({ meanMs: 1_200, samples: 2 })
  })

  test('nonsense is ignored', () => {
    const samples = createSamples()
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      samples.addService(served(value))
      samples.addLoad('rig', 'm', value, 5)
    }

    expect(samples.service('rig', 'm')).toBeUndefined()
    expect(samples.loadMs('rig', 'm', 5)).toBeUndefined()
  })

  test('a node and a model cannot be mistaken for another pair', () => {
    const samples = createSamples()
    samples.addService(served(1, 'a', 'b/c'))

    expect(samples.service('a/b', 'c')).toBeUndefined()
  })

  test('spellings without end do not split a pair', () => {
    const samples = createSamples()
    for (let i = 0; i < 2 * MAX_PAIRS; i++) samples.service('rig', `M${i}`)
    samples.addService(served(1_000, 'rig', 'M'))
    for (let i = 0; i < 2 * MAX_PAIRS; i++) samples.service('rig', `N${i}`)
    samples.addService(served(2_000, 'rig', 'm'))

    expect(samples.service('rig', 'M:latest')).toEqual({ meanMs: 1_200, samples: 2 })
  })
})

describe('load times', () => {
  test('of the model itself when it was loaded before', () => {
    const samples = createSamples()
    samples.addLoad('rig', 'm', 4_000, 8)
    samples.addLoad('rig', 'm', 9_000)

    expect(samples.loadMs('rig', 'm', 100)).toEqual({ meanMs: 5_000, samples: 2 })
  })

  test('else by the rate of the node and the size of the model', () => {
    const samples = createSamples()
    samples.addLoad('rig', 'm', 4_000, 8)

    expect(samples.loadMs('rig', 'other', 10)).toEqual({ meanMs: 5_000, samples: 1 })
    expect(samples.loadMs('rig', 'other')).toBeUndefined()
    expect(samples.loadMs('box', 'other', 10)).toBeUndefined()
  })

  test('a load that took no time says nothing about the rate', () => {
    const samples = createSamples()
    samples.addLoad('rig', 'm', 0, 8)

    expect(samples.loadMs('rig', 'other', 10)).toBeUndefined()
  })
})

describe('keeping', () => {
  test('BL-L05: the number of pairs is bounded, the least recently measured goes first', () => {
    const samples = createSamples()
    samples.addService(served(1, 'rig', 'first'))
    for (let i = 0; i < MAX_PAIRS; i++) {
      samples.addService(served(1, 'rig', `m${i}`))
      if (i === 5) samples.addService(served(1, 'rig', 'm0'))
    }
    samples.addService(served(1, 'rig', 'last'))

    expect(samples.size()).toBe(MAX_PAIRS)
    expect(samples.service('rig', 'first')).toBeUndefined()
    expect(samples.service('rig', 'm1')).toBeUndefined()
    expect(samples.service('rig', 'm0')).toEqual({ meanMs: 1, samples: 2 })
  })

  test('what a sample changed is given to the store, and a new one goes on from there', () => {
    const saved: Partial<Learned>[] = []
    const samples = createSamples({ save: (changed) => void saved.push(changed) })
    samples.addService({
      ...served(1_000),
      tokensIn: 100,
      tokensOut: 41,
      prefillMs: 200,
      decodeMs: 800,
      concurrency: 2,
    })
    samples.addLoad('rig', 'm', 4_000, 8)
    samples.addPrompt('M:latest', 1_000, 500)

    const pair = {
      node: 'rig',
      model: 'm',
      serviceMs: 1_000,
      services: 1,
      window: { size: 1, ranks: [1_000] },
      prefill: { tokens: 100, ms: 200, samples: 1 },
      decode: { '2': { tokens: 40, ms: 800, samples: 1 } },
      loads: 0,
    }
    const means = [{ node: 'rig', latencyMs: 1_000, tokensPerSecond: 51.25, samples: 1 }]
    const known = {
      pairs: [{ ...pair, loadMs: 4_000, loads: 1 }],
      rates: [{ node: 'rig', gbPerSecond: 2, loads: 1 }],
    }
    const ratios = [{ model: 'm', bytes: 1_000, tokens: 500, samples: 1 }]
    expect(saved).toEqual([{ pairs: [pair], means }, known, { ratios }])
    const next = createSamples({ load: () => ({ ...known, means, ratios }) })
    next.addService(served(2_000))
    expect(next.service('rig', 'm')).toEqual({ meanMs: 1_200, samples: 2 })
    expect(next.p75('rig', 'm')).toBe(2_000)
    expect(next.prefill('rig', 'm')).toEqual({ perSecond: 500, samples: 1 })
    expect(next.decode('rig', 'm', 8)).toEqual({ perSecond: 50, samples: 1 })
    expect(next.nodeMeans('rig')).toMatchObject({ latencyMs: 1_200, tokensPerSecond: 51.25 })
    expect(next.bytesPerToken('m')).toBe(2)
    expect(next.loadMs('rig', 'other', 2)).toEqual({ meanMs: 1_000, samples: 1 })
  })
})

test('everything about a node, with the number of samples', () => {
  const samples = createSamples()
  samples.addService({
    ...served(2_000),
    tokensIn: 400,
    tokensOut: 61,
    prefillMs: 800,
    decodeMs: 1_200,
    concurrency: 1.2,
  })
  samples.addService({
    ...served(3_000),
    tokensIn: 400,
    tokensOut: 61,
    prefillMs: 800,
    decodeMs: 2_000,
    concurrency: 2.6,
  })
  samples.addLoad('rig', 'b', 2_000, 4)
  samples.addService(served(5, 'box'))

  expect(samples.learned('rig')).toEqual({
    samples: 2,
    latencyMs: 2_200,
    tokensPerSecond: expect.closeTo(46.767, 3),
    loadGbPerSecond: 2,
    models: [
      { model: 'b', load: { meanMs: 2_000, samples: 1 }, decode: [] },
      {
        model: 'm',
        service: { meanMs: 2_200, samples: 2, p75Ms: 3_000 },
        prefill: { perSecond: 500, samples: 2 },
        decode: [
          { concurrency: 1, perSecond: 50, samples: 1 },
          { concurrency: 3, perSecond: 30, samples: 1 },
        ],
      },
    ],
  })
  expect(samples.learned('nobody')).toEqual({ samples: 0, models: [] })
})
