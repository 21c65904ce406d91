import { describe, expect, test } from 'bun:test'
import { DEFAULT_PRIORITIES } from '../../../src/domain/config'
import { isModelAllowed, mayRun } from '../../../src/domain/model-globs'
import { POLICY_NAMES } from '../../../src/domain/policies'
import { forecast, withQueued } from '../../../src/placement/estimate'
import { createKeyLimits } from '../../../src/placement/key-limits'
import { policies } from '../../../src/placement/policies'
import { batchRoom, classAt, comparePlaces, queueLimitFor } from '../../../src/placement/priority'
import { createRoom } from '../../../src/placement/room'
import { testJob } from '../../support/host'

const rules = { ...DEFAULT_PRIORITIES, batchMaxWaitMs: 1_000 }

describe('places', () => {
  test('go by class, then by arrival', () => {
    const places = [
      { priority: 'batch', arrivedAt: 1 },
      { priority: 'normal', arrivedAt: 3 },
      { priority: 'critical', arrivedAt: 4 },
      { priority: 'normal', arrivedAt: 2 },
    ] as const

    const sorted = places.toSorted((a, b) => comparePlaces(a, b, 10, rules))

    expect(sorted.map(({ arrivedAt }) => arrivedAt)).toEqual([4, 2, 3, 1])
  })

  test('the order of the classes is as configured', () => {
    const turned = { ...rules, order: ['batch', 'normal', 'critical'] as const }

    expect(
      comparePlaces({ priority: 'batch', arrivedAt: 2 }, { priority: 'critical', arrivedAt: 1 }, 2, turned),
    ).toBeLessThan(0)
  })

  test('batch work that has waited for max_wait is normal, and goes before those that came later', () => {
    const old = { priority: 'batch', arrivedAt: 0 } as const

    expect(classAt(old, 999, rules)).toBe('batch')
    expect(classAt(old, 1_000, rules)).toBe('normal')
    expect(comparePlaces(old, { priority: 'normal', arrivedAt: 500 }, 1_000, rules)).toBeLessThan(0)
  })

  test('a critical request may use a queue that looks full to others', () => {
    expect(queueLimitFor(50, 'critical', rules)).toBe(100)
    expect(queueLimitFor(50, 'normal', rules)).toBe(50)
  })
})

test.each([
  [{ slots: 4, batch: 0, nodeInFlight: 0 }, 2],
  [{ slots: 4, batch: 1, nodeInFlight: 3 }, 1],
  [{ slots: 4, batch: 2, nodeInFlight: 2 }, 0],
  [{ slots: 3, batch: 1, nodeInFlight: 1 }, 0],
  [{ slots: 1, batch: 0, nodeInFlight: 0 }, 1],
  [{ slots: 1, batch: 1, nodeInFlight: 1 }, 0],
  [{ slots: 1, batch: 0, nodeInFlight: 1 }, 0],
])('of %j batch work may take %d more at a share of one half', (facts, left) => {
  expect(batchRoom(facts, 0.5)).toBe(left)
})

describe('the room', () => {
  test('moves what has aged to its new place, and only that', () => {
    let now = 0
    const room = createRoom((job) => rules.order.indexOf(classAt(job, now, rules)))
    const batch = testJob({ priority: 'batch', arrivedAt: 0 })
    const normal = testJob({ arrivedAt: 500 })
    room.add({ job: batch, attempt: 1, excluded: [] }, 'waiting', 'busy')
    room.add({ job: normal, attempt: 1, excluded: [] }, 'waiting', 'busy')
    const order = () => room.entries().map(({ job }) => job.id)

    expect(room.heads().map(({ job }) => job.id)).toEqual([normal.id])
    now = 1_000
    room.reorder()

    expect(order()).toEqual([batch.id, normal.id])
    expect(room.heads().map(({ job }) => job.id)).toEqual([batch.id])
    room.remove(batch.id)
    expect(room.heads().map(({ job }) => job.id)).toEqual([normal.id])
  })

  test('knows how many of the same model go before a job', () => {
    const room = createRoom()
    room.add({ job: testJob({ arrivedAt: 1 }), attempt: 1, excluded: [] }, 'waiting', 'busy')
    room.add({ job: testJob({ arrivedAt: 2, priority: 'batch' }), attempt: 1, excluded: [] }, 'waiting', 'busy')
    room.add({ job: testJob({ arrivedAt: 2, asked: 'other' }), attempt: 1, excluded: [] }, 'waiting', 'busy')

    expect(room.ahead(testJob({ arrivedAt: 3 }))).toBe(1)
    expect(room.ahead(testJob({ arrivedAt: 3, priority: 'batch' }))).toBe(2)
    expect(room.ahead(testJob({ arrivedAt: 3, priority: 'critical' }))).toBe(0)
  })

  test('requests under different policies are not one group', () => {
    const room = createRoom()
    room.add({ job: testJob(), attempt: 1, excluded: [] }, 'waiting', 'busy')
    room.add({ job: testJob({ policy: 'warmth' }), attempt: 1, excluded: [] }, 'waiting', 'busy')

    expect(room.heads()).toHaveLength(2)
  })
})

describe('the estimate', () => {
  test('is the service time alone where a slot is free', () => {
    expect(forecast([{ freeInMs: 0, serviceMs: 700 }], 0)).toEqual({ waitMs: 0, serviceMs: 700 })
  })

  test('counts those ahead on whichever slot is free first', () => {
    const slots = [
      { freeInMs: 100, serviceMs: 1_000 },
      { freeInMs: 400, serviceMs: 1_000 },
    ]

    expect(forecast(slots, 1)).toEqual({ waitMs: 400, serviceMs: 1_000 })
    expect(forecast(slots, 2)).toEqual({ waitMs: 1_100, serviceMs: 1_000 })
  })

  test('takes the slot that ends it first, not the one that begins it first', () => {
    const slots = [
      { freeInMs: 0, serviceMs: 9_000 },
      { freeInMs: 500, serviceMs: 1_000 },
    ]

    expect(forecast(slots, 0)).toEqual({ waitMs: 500, serviceMs: 1_000 })
  })

  test('stays cheap and plausible with thousands ahead', () => {
    const slots = Array.from({ length: 4 }, () => ({ freeInMs: 0, serviceMs: 1_000 }))

    expect(withQueued(slots, 10_000)[0]?.freeInMs).toBeCloseTo(2_500_000, -4)
    expect(forecast([], 3)).toBeUndefined()
  })
})

describe('limits of a key', () => {
  test('a bucket of one minute fills evenly', () => {
    let now = 0
    const limits = createKeyLimits(() => now)
    const enter = (request: string) => limits.enter(request, 'k', { requestsPerMinute: 2 })

    expect([enter('a'), enter('b')]).toEqual([undefined, undefined])
    expect(enter('c')).toEqual({ limit: 'requests_per_minute', most: 2, retryAfterMs: 30_000 })
    now = 29_999
    expect(enter('d')).toMatchObject({ limit: 'requests_per_minute' })
    now = 30_000
    expect(enter('e')).toBeUndefined()
    now = 10 * 60_000
    expect([enter('f'), enter('g')]).toEqual([undefined, undefined])
    expect(enter('h')).toMatchObject({ limit: 'requests_per_minute' })
  })

  test('a request is counted once and leaves once, and one that is refused takes no token', () => {
    const limits = createKeyLimits(() => 0)
    const enter = (request: string, key = 'k') => limits.enter(request, key, { concurrent: 1, requestsPerMinute: 2 })

    expect(enter('a')).toBeUndefined()
    expect(enter('b')).toEqual({ limit: 'concurrent', most: 1 })
    expect(enter('x', 'other')).toBeUndefined()
    limits.leave('b')
    limits.leave('a')
    limits.leave('a')

    expect(limits.running('k')).toBe(0)
    expect(enter('c')).toBeUndefined()
    expect(limits.running('other')).toBe(1)
  })
})

describe('globs of models', () => {
  test.each([
    [undefined, 'qwen3:8b', true],
    [['*', '!*:120b'], 'qwen3:8b', true],
    [['*', '!*:120b'], 'gpt-oss:120b', false],
    [['!*:120b'], 'qwen3:8b', true],
    [['qwen3:*'], 'QWEN3:8b', true],
    [['qwen3'], 'qwen3:latest', true],
    [['qwen3'], 'qwen3:8b', false],
    [['qwen/*'], 'qwen/qwen3-coder/30b', true],
    [['a.c'], 'abc', false],
  ])('%j and %s', (globs, model, allowed) => {
    expect(isModelAllowed(globs, model)).toBe(allowed)
  })

  test('an alias may be allowed without its models, but not what is excluded, and no stand-in slips through', () => {
    expect(mayRun(['smart'], ['smart'], ['qwen3:8b'])).toBe(true)
    expect(mayRun(['*', '!*:120b'], ['smart'], ['gpt-oss:120b'])).toBe(false)
    expect(mayRun(['qwen3:*'], ['qwen3:8b', 'llama3:8b'], ['qwen3:8b', 'llama3:8b'])).toBe(false)
  })
})

test('every policy that may be named exists', () => {
  const names: readonly string[] = POLICY_NAMES

  expect(policies.map(({ name }) => name).filter((name) => !names.includes(name))).toEqual([])
  expect(names.filter((name) => !policies.some((policy) => policy.name === name))).toEqual([])
})
