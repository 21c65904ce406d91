import { describe, expect, test } from 'bun:test'
import { hashKey } from '../../../src/config/hash-key'
import { DEFAULT_PRIORITIES } from '../../../src/domain/config'
import { POLICY_NAMES } from '../../../src/domain/policies'
import { DEFAULT_COST, DEFAULT_SCORE } from '../../../src/domain/score'
import { loadToml } from './load-toml'

test('without a file everything is at its default', () => {
  const { config } = loadToml('')

  expect(config?.priorities).toEqual(DEFAULT_PRIORITIES)
  expect(config?.score).toEqual(DEFAULT_SCORE)
  expect(config?.cost).toEqual(DEFAULT_COST)
  expect(config?.server).toMatchObject({ holdHeadersMs: 10_000, loadingNotes: 'comment' })
  expect(config?.metrics.perKey).toBe(false)
  expect(config?.limits.requestsPerMinute).toBeUndefined()
})

describe('priorities', () => {
  test('are read with their units', () => {
    const text = `[priorities]
default = "batch"
order = ["normal", "critical", "batch"]
[priorities.critical]
queue_allowance = 1.5
[priorities.batch]
max_share = 0.25
max_wait = "1h"`

    expect(loadToml(text).config?.priorities).toEqual({
      default: 'batch',
      order: ['normal', 'critical', 'batch'],
      criticalQueueAllowance: 1.5,
      batchMaxShare: 0.25,
      batchMaxWaitMs: 3_600_000,
    })
  })

  test.each([
    ['order = ["critical", "normal"]', 'priorities.order must name each of critical, normal, batch once'],
    ['order = ["critical", "normal", "normal"]', 'priorities.order must name each of critical, normal, batch once'],
    ['default = "urgent"', '"urgent" is not a priority'],
    ['batch = { max_share = 1.5 }', 'priorities.batch.max_share must be a number from 0 to 1'],
    ['critical = { queue_allowance = 0 }', 'priorities.critical.queue_allowance must be a number above 0'],
  ])('%s is an error', (line, message) => {
    expect(loadToml(`[priorities]\n${line}`).problems.map((problem) => problem.message)[0]).toStartWith(message)
  })
})

describe('weights', () => {
  test('only what is changed needs to be there, and each has its variable', () => {
    const env = {
      FLEET_SCORE_ROLE_LARGE_THRESHOLD_GB: '30',
      FLEET_SCORE_WARMTH_HOT: '80',
      FLEET_COST_THROUGHPUT: '-9.5',
    }
    const { config, problems } = loadToml('[score]\nqueue_depth = { per_request = 4 }', { env })

    expect(problems).toEqual([])
    expect(config?.score).toEqual({
      ...DEFAULT_SCORE,
      roleLargeThresholdGb: 30,
      warmth: { ...DEFAULT_SCORE.warmth, hot: 80 },
      queueDepth: { ...DEFAULT_SCORE.queueDepth, perRequest: 4 },
    })
    expect(config?.cost).toEqual({ ...DEFAULT_COST, throughput: -9.5 })
  })

  test('an unknown signal is named with the nearest known one', () => {
    expect(loadToml('[score]\nmemory_fitt = { max = 3 }').problems).toMatchObject([
      { code: 'unknown_key', suggestion: 'memory_fit' },
    ])
  })
})

describe('keys', () => {
  const keyed = (lines: string) =>
    loadToml(`[auth]\nmode = "keys"\n[[auth.keys]]\nname = "a"\nkey_hash = "sha256:${hashKey('x')}"\n${lines}`)

  test('may have models, a highest priority, a policy and limits', () => {
    const { config, problems } = keyed(
      'models = ["*", "!*:120b"]\npriority = "normal"\npolicy = "warmth"\nlimits = { requests_per_minute = 60, concurrent = 4 }',
    )

    expect(problems).toEqual([])
    expect(config?.auth.keys).toEqual([
      {
        name: 'a',
        sha256: hashKey('x'),
        scopes: ['inference'],
        models: ['*', '!*:120b'],
        priority: 'normal',
        policy: 'warmth',
        limits: { requestsPerMinute: 60, concurrent: 4 },
      },
    ])
  })

  test.each([
    'priority = "urgent"',
    'policy = "nearest"',
    'limits = { requests_per_minute = 0 }',
    'limits = { rpm = 1 }',
  ])('%s is an error', (line) => {
    expect(keyed(line).problems).toHaveLength(1)
  })
})

test.each([...POLICY_NAMES])('policy.use may be %s', (use) => {
  expect(loadToml(`policy.use = "${use}"`).config?.policy.use).toBe(use)
})
