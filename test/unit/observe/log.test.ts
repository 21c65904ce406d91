import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import type { Fact } from '../../../src/domain/facts'
import { createLog } from '../../../src/observe/log'
import { prettyLine } from '../../../src/observe/log-pretty'
import { ARRIVAL, arrived, eliminated, failed, HOLD, job, ordinary, outcome, phase, placed, settled } from './builders'

const logging = (level = 'info', format: 'auto' | 'pretty' | 'json' = 'json') => {
  const lines: string[] = []
  const log = createLog({ level, format, write: (line) => void lines.push(line) })
  const parsed = () => lines.map((line) => JSON.parse(line))
  return { log, lines, parsed }
}

const told = (facts: readonly Fact[], level = 'info') => {
  const { log, parsed } = logging(level)
  for (const fact of facts) log.hear(fact)
  return parsed()
}

afterEach(() => void setSystemTime())

describe('lines', () => {
  test('the time is in UTC, to the millisecond', () => {
    const { log, parsed } = logging()
    const at = Date.UTC(2026, 0, 31, 23, 59, 59, 7)
    for (const ms of [at, at + 35, at + 992, at + 993, at]) {
      setSystemTime(new Date(ms))
      log.info({}, 'x')
    }

    expect(parsed().map(({ time }) => time)).toEqual([
      '2026-01-31T23:59:59.007Z',
      '2026-01-31T23:59:59.042Z',
      '2026-01-31T23:59:59.999Z',
      '2026-02-01T00:00:00.000Z',
      '2026-01-31T23:59:59.007Z',
    ])
  })

  test('an ordinary request is one line: its end', () => {
    expect(told(ordinary())).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        request: 'req_1',
        node: 'rig',
        model: 'qwen3:8b',
        end: 'completed',
        status: 200,
        residency: 'resident',
        total_ms: 9_800,
        ttft_ms: 4_020,
        tokens_in: 8_190,
        tokens_out: 212,
        bytes: 20_480,
        retries: 0,
        msg: 'request.settled',
      },
    ])
  })

  test('a decision that is more than a free slot has a line of its own', () => {
    const decided = ordinary().map((fact) =>
      fact.type === 'request.placed' ? { ...fact, decision: { ...fact.decision, kind: 'load' as const } } : fact,
    )

    expect(told(decided).map(({ msg }) => msg)).toEqual(['request.placed', 'request.settled'])
    expect(told(decided)[0]).toEqual({
      level: 'info',
      time: expect.any(String),
      request: 'req_1',
      node: 'rig',
      model: 'qwen3:8b',
      reason: 'resident',
      decision: 'load',
      cause: 'arrival',
      attempt: 1,
      policy: 'residency',
      candidates: 3,
      took_ms: 0.04,
      msg: 'request.placed',
    })
  })

  test('a held request is told when it is held, not at every look', () => {
    const look = (cause: 'arrival' | 'hold') => placed(0, [eliminated('rig', 'offline')], HOLD, { cause })

    expect(told([arrived(), look('arrival'), look('hold'), look('hold')])).toHaveLength(1)
    expect(told([look('hold')], 'debug')).toHaveLength(1)
  })

  test('every kind of fact has a line with its fields in snake_case', () => {
    const load = { at: ARRIVAL, node: 'rig', model: 'm' }
    const at = ARRIVAL
    const facts: Fact[] = [
      ...ordinary(job({ key: 'team' })),
      phase(1, 'held', { estimate: { valueMs: 5, basis: 'default', samples: 0 } }),
      failed(1, 'rig'),
      { type: 'node.found', at, node: 'rig', kind: 'ollama', url: 'http://h', version: '1' },
      { type: 'node.added', at, node: 'rig', kind: 'ollama', url: 'http://h' },
      { type: 'node.removed', at, node: 'rig' },
      { type: 'node.health', at, node: 'rig', health: 'offline', reason: 'refused' },
      { type: 'node.admission', at, node: 'rig', admission: 'paused' },
      { type: 'node.breaker', at, node: 'rig', breaker: 'open', retryAt: at + 5_000 },
      { type: 'load.started', ...load, cause: 'request', evicts: [] },
      { type: 'load.finished', ...load, tookMs: 5 },
      { type: 'load.failed', ...load, tookMs: 5, message: 'no' },
      { type: 'model.evicted', ...load, by: 'engine' },
      { type: 'actor.failed', at, actor: 'node/rig', machine: 'node', message: 'x', restarted: true },
      { type: 'fleet.draining', at, running: 2, graceMs: 60_000 },
      { type: 'fleet.stopped', at, cut: 1 },
    ]

    const lines = told(facts, 'debug')

    expect(lines.map(({ msg }) => msg)).toEqual(facts.map(({ type }) => type))
    for (const line of lines) {
      expect(Object.keys(line).filter((key) => !/^[a-z][a-z_]*$/.test(key))).toEqual([])
      expect(line).not.toHaveProperty('at')
    }
    expect(lines.find(({ msg }) => msg === 'node.breaker')).toMatchObject({ level: 'warn', retry_in_ms: 5_000 })
    expect(lines.find(({ msg }) => msg === 'actor.failed')).toMatchObject({ level: 'error', reason: 'x' })
  })

  test('BL-W07: at level warn nothing below is written', () => {
    const { log, lines } = logging('warn')
    for (let i = 0; i < 1_000; i++) for (const fact of ordinary(job({ id: `req_${i}` }))) log.hear(fact)
    log.info({}, 'hello')
    log.debug({}, 'hello')

    expect(lines).toEqual([])

    log.hear(failed(1, 'rig'))
    log.warn({ node: 'rig' }, 'slow')

    expect(lines).toHaveLength(2)
  })

  test('silent is silent', () => {
    expect(told([failed(1, 'rig')], 'silent')).toEqual([])
  })
})

describe('folding', () => {
  test('BL-K05: a storm of equal warnings is a line per node and 10 s, with a count', () => {
    const storm = Array.from({ length: 30_000 }, (_, i) => failed(i, i % 2 ? 'rig' : 'box', { request: `req_${i}` }))

    const lines = told(storm)

    expect(lines.length).toBeLessThan(20)
    const counted = lines.reduce((sum, { repeated }) => sum + (repeated ?? 1), 0)
    expect(counted).toBeGreaterThan(19_990)
    expect(lines.filter(({ repeated }) => repeated).map(({ node, msg }) => [node, msg])).toContainEqual([
      'rig',
      'attempt.failed',
    ])
  })

  test('nothing that was folded is lost: flush tells the rest', () => {
    const { log, parsed } = logging()
    for (let i = 0; i < 5; i++) log.hear(failed(i, 'rig'))
    log.flush()
    log.flush()

    expect(parsed().map(({ repeated }) => repeated)).toEqual([undefined, 4])
  })

  test('other kinds and other nodes are not folded together', () => {
    const end = (node: string) => settled(1, { outcome: outcome({ end: 'failed', node }) })

    expect(told([failed(1, 'rig'), failed(1, 'box'), end('rig'), end('box')])).toHaveLength(4)
  })

  test('after 10 s the next one is written again', () => {
    expect(
      told([failed(0, 'rig'), failed(9_999, 'rig'), failed(10_000, 'rig')]).map(({ repeated }) => repeated),
    ).toEqual([undefined, 1, undefined])
  })

  test('lines below warn are never folded', () => {
    expect(told([...ordinary(), ...ordinary()])).toHaveLength(2)
  })
})

describe('pretty', () => {
  test('one line for people', () => {
    const { log, lines } = logging('info', 'pretty')
    log.info({ request: 'req_1', node: 'rig', took_ms: 0.4 }, 'request.placed')

    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}request\.placed {4}request=req_1 node=rig took_ms=0\.4\n$/)
  })

  test('values cannot break out of their line', () => {
    const line = prettyLine(
      JSON.stringify({ time: '2024-01-01T12:04:12.101Z', level: 'warn', msg: 'x', reason: 'a\nb\u001b[31m c' }),
    )

    expect(line).toBe('12:04:12.101 WARN  x                 reason="a\\nb\\u001b[31m c"')
  })

  test('what is not a terminal gets JSON by itself', () => {
    const { log, parsed } = logging('info', 'auto')
    log.info({}, 'x')

    expect(parsed()).toHaveLength(1)
  })
})
