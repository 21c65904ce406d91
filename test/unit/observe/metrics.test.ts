import { afterEach, describe, expect, test } from 'bun:test'
import type { Fact } from '../../../src/domain/facts'
import { createMetrics, type Metrics, type MetricsOptions } from '../../../src/observe/metrics'
import type { NodeView } from '../../../src/ports/fleet'
import {
  ARRIVAL,
  arrived,
  eliminated,
  failed,
  HOLD,
  job,
  nodeView,
  ordinary,
  outcome,
  overview,
  phase,
  placed,
  ranked,
  settled,
  start,
} from './builders'
import { startWatch } from '../../support/stopwatch'

const open: Metrics[] = []
afterEach(() => {
  for (const metrics of open.splice(0)) metrics.close()
})

const metricsOf = (facts: readonly Fact[], options: Partial<MetricsOptions> & { nodes?: readonly NodeView[] } = {}) => {
  const { nodes = [], ...rest } = options
  const metrics = createMetrics({ maxModels: 200, snapshot: () => ({ nodes, overview: overview() }), ...rest })
  open.push(metrics)
  for (const fact of facts) metrics.hear(fact)
  return metrics
}

/** The lines of the page whose metric name begins so, without comments. */
const lines = async (metrics: Metrics, name: string): Promise<string[]> =>
  (await metrics.expose()).split('\n').filter((line) => line.startsWith(name))

describe('counting facts', () => {
  test('a request that ended because its last node failed counts as that node’s', async () => {
    const facts = [
      arrived(),
      placed(1, [ranked('rig', [0, 0, 0])], start('rig')),
      phase(1, 'prefill', { node: 'rig' }),
      failed(5, 'rig', { retried: true }),
      placed(5, [eliminated('rig', 'failed_before')], HOLD, { cause: 'retry' }),
      settled(6, { outcome: { end: 'failed', status: 502, phase: 'placing', bytes: 0, retries: 0 } }),
    ]

    expect(await lines(metricsOf(facts), 'fleet_requests_total')).toEqual([
      'fleet_requests_total{node="rig",model="qwen3:8b",dialect="openai",outcome="failed"} 1',
    ])
  })

  test('an ordinary request', async () => {
    const metrics = metricsOf(ordinary())

    expect(await lines(metrics, 'fleet_requests_total')).toEqual([
      'fleet_requests_total{node="rig",model="qwen3:8b",dialect="openai",outcome="completed"} 1',
    ])
    expect(await lines(metrics, 'fleet_residency_')).toEqual([
      'fleet_residency_hits_total{node="rig",model="qwen3:8b"} 1',
    ])
    expect(await lines(metrics, 'fleet_tokens_total')).toEqual([
      'fleet_tokens_total{node="rig",model="qwen3:8b",direction="input"} 8190',
      'fleet_tokens_total{node="rig",model="qwen3:8b",direction="output"} 212',
    ])
    expect(await lines(metrics, 'fleet_placements_total')).toEqual([
      'fleet_placements_total{policy="residency",why="resident"} 1',
    ])
    expect(await lines(metrics, 'fleet_eliminations_total')).toEqual([
      'fleet_eliminations_total{node="pi",reason="memory_fit"} 1',
    ])
    expect(await lines(metrics, 'fleet_request_latency_seconds_sum')).toEqual([
      'fleet_request_latency_seconds_sum{node="rig",outcome="completed"} 9.8',
    ])
    expect(await lines(metrics, 'fleet_time_to_first_token_seconds_count')).toEqual([
      'fleet_time_to_first_token_seconds_count{node="rig",residency="resident"} 1',
    ])
    expect(await lines(metrics, 'fleet_placement_duration_seconds_sum')).toEqual([
      'fleet_placement_duration_seconds_sum{policy="residency"} 0.00004',
    ])
  })

  test('calls of tools that were repaired', async () => {
    const metrics = metricsOf([arrived(), settled(9_800, { outcome: outcome({ toolCallsRepaired: 2 }) })])

    expect(await lines(metrics, 'fleet_tool_calls_repaired_total')).toEqual([
      'fleet_tool_calls_repaired_total{node="rig",model="qwen3:8b"} 2',
    ])
    expect(await lines(metricsOf(ordinary()), 'fleet_tool_calls_repaired_total')).toEqual([])
  })

  test('buckets are cumulative and end with the count', async () => {
    const metrics = metricsOf([...ordinary(), ...ordinary(job({ id: 'req_2' }))])
    const buckets = await lines(metrics, 'fleet_request_latency_seconds_bucket')

    expect(buckets.find((line) => line.includes('le="5"'))).toEndWith(' 0')
    expect(buckets.find((line) => line.includes('le="10"'))).toEndWith(' 2')
    expect(buckets.at(-2)).toContain('le="1200"')
    expect(buckets.at(-1)).toBe('fleet_request_latency_seconds_bucket{node="rig",outcome="completed",le="+Inf"} 2')
  })

  test('time waited for a slot is counted once, when the request starts', async () => {
    const metrics = metricsOf([
      arrived(),
      phase(0, 'waiting'),
      phase(2_000, 'loading', { node: 'rig' }),
      phase(3_000, 'waiting', { node: 'rig' }),
      phase(4_000, 'prefill', { node: 'rig' }),
      phase(5_000, 'prefill', { node: 'box' }),
    ])

    expect(await lines(metrics, 'fleet_queue_wait_seconds_sum')).toEqual([
      'fleet_queue_wait_seconds_sum{node="rig",priority="normal"} 3',
    ])
  })

  test('time held is counted by what ended it', async () => {
    const metrics = metricsOf([
      arrived(),
      phase(0, 'held'),
      phase(2_000, 'prefill', { node: 'rig' }),
      arrived(job({ id: 'req_2' })),
      phase(0, 'held', { request: 'req_2' }),
      settled(30_000, { request: 'req_2', outcome: outcome({ end: 'expired' }) }),
    ])

    expect(await lines(metrics, 'fleet_hold_wait_seconds_sum')).toEqual([
      'fleet_hold_wait_seconds_sum{outcome="placed"} 2',
      'fleet_hold_wait_seconds_sum{outcome="expired"} 30',
    ])
  })

  test('loads by cause, evictions, retries and restarts', async () => {
    const at = ARRIVAL
    const load = { at, node: 'rig', model: 'qwen3:8b' }
    const metrics = metricsOf([
      { type: 'load.started', ...load, cause: 'request', evicts: [] },
      { type: 'load.finished', ...load, tookMs: 6_000 },
      { type: 'load.started', ...load, cause: 'request', evicts: [] },
      { type: 'load.failed', ...load, tookMs: 1, message: 'no' },
      { type: 'model.evicted', ...load, by: 'engine' },
      arrived(),
      failed(1, 'rig'),
      phase(2, 'prefill', { node: 'box' }),
      failed(3, 'box', { retried: false }),
      { type: 'actor.failed', at, actor: 'node/rig', machine: 'node', message: 'x', restarted: true },
      { type: 'actor.failed', at, actor: 'node/rig', machine: 'node', message: 'x', restarted: false },
    ])

    expect(await lines(metrics, 'fleet_model_load_seconds_')).toContain(
      'fleet_model_load_seconds_sum{node="rig",cause="request"} 6',
    )
    expect(await lines(metrics, 'fleet_evictions_total')).toEqual([
      'fleet_evictions_total{node="rig",model="qwen3:8b",by="engine"} 1',
    ])
    expect(await lines(metrics, 'fleet_retries_total')).toEqual(['fleet_retries_total{node="rig",code="connect"} 1'])
    expect(await lines(metrics, 'fleet_actor_restarts_total')).toEqual(['fleet_actor_restarts_total{machine="node"} 1'])
  })

  test('a failed attempt that no other one follows is not counted as made again', async () => {
    const metrics = metricsOf([arrived(), failed(1, 'rig'), settled(2)])

    expect(await lines(metrics, 'fleet_retries_total')).toEqual([])
  })
})

describe('labels stay bounded', () => {
  test('models beyond the limit are `other`', async () => {
    const ran = (model: string) => settled(1, { outcome: outcome({ model }) })
    const metrics = metricsOf(['a', 'b', 'c', 'd', 'a'].map(ran), { maxModels: 2 })

    expect(await lines(metrics, 'fleet_requests_total')).toEqual([
      'fleet_requests_total{node="rig",model="a",dialect="openai",outcome="completed"} 2',
      'fleet_requests_total{node="rig",model="b",dialect="openai",outcome="completed"} 1',
      'fleet_requests_total{node="rig",model="other",dialect="openai",outcome="completed"} 2',
    ])
  })

  test('spellings of one model share a label', async () => {
    const asked = (name: string) =>
      settled(1, { asked: name, outcome: { end: 'rejected', status: 429, phase: 'placing', bytes: 0, retries: 0 } })
    const metrics = metricsOf([...ordinary(), asked('QWEN3:8b')])

    expect(await lines(metrics, 'fleet_requests_total{node=""')).toEqual([
      'fleet_requests_total{node="",model="qwen3:8b",dialect="openai",outcome="rejected"} 1',
    ])
  })

  test('names that clients make up never become labels', async () => {
    const refused = (asked: string) =>
      settled(1, { asked, outcome: { end: 'rejected', status: 404, phase: 'placing', bytes: 0, retries: 0 } })
    const metrics = metricsOf([refused('x1'), refused('x2'), arrived(job({ asked: 'x3' })), phase(0, 'waiting')])

    expect(await metrics.expose()).not.toMatch(/x[123]/)
    expect(await lines(metrics, 'fleet_requests_total')).toEqual([
      'fleet_requests_total{node="",model="other",dialect="openai",outcome="rejected"} 2',
    ])
  })

  test('values are escaped', async () => {
    const metrics = metricsOf([arrived(), failed(1, 'a"b\\c\nd'), phase(2, 'prefill', { node: 'box' })])

    expect(await lines(metrics, 'fleet_retries_total')).toEqual([
      'fleet_retries_total{node="a\\"b\\\\c\\nd",code="connect"} 1',
    ])
  })

  test('a node that was removed takes its series along', async () => {
    const metrics = metricsOf([
      ...ordinary(),
      arrived(),
      failed(1, 'box'),
      phase(2, 'prefill', { node: 'rig' }),
      { type: 'node.removed', at: 1, node: 'rig' },
    ])

    expect(await metrics.expose()).not.toContain('node="rig"')
    expect(await lines(metrics, 'fleet_retries_total')).toHaveLength(1)
  })
})

describe('gauges', () => {
  const rig = nodeView('rig', {
    memoryGb: 24,
    freeGb: 3,
    claimedGb: 2,
    resident: [{ name: 'qwen3:8b', state: 'ready', memoryGb: 18 }],
    queues: [
      { node: 'rig', model: 'qwen3:8b', slots: 4, slotsBasis: 'reported', inFlight: 3, waiting: 0, lingering: 0 },
    ],
  })

  test('are set from the snapshot at the scrape', async () => {
    const nodes = [rig, nodeView('pi', { kind: 'llamacpp', health: 'offline', state: 'offline' })]
    const metrics = metricsOf([], { nodes })
    const page = await metrics.expose()

    for (const line of [
      'fleet_healthy_nodes 1',
      'fleet_inflight{node="rig",model="qwen3:8b"} 3',
      'fleet_slots{node="rig",model="qwen3:8b"} 4',
      'fleet_waiting{node="rig",model="qwen3:8b"} 0',
      'fleet_node_up{node="rig",kind="ollama"} 1',
      'fleet_node_up{node="pi",kind="llamacpp"} 0',
      'fleet_node_state{node="pi",state="offline"} 1',
      'fleet_node_memory_bytes{node="rig",use="model"} 18000000000',
      'fleet_node_memory_bytes{node="rig",use="other"} 3000000000',
      'fleet_node_memory_bytes{node="rig",use="claimed"} 2000000000',
      'fleet_node_memory_bytes{node="rig",use="free"} 3000000000',
      'fleet_model_resident_bytes{node="rig",model="qwen3:8b"} 18000000000',
    ]) {
      expect(page).toContain(`${line}\n`)
    }
    expect(page).not.toContain('fleet_node_memory_bytes{node="pi",use="free"}')
  })

  test('what is gone is not shown any more', async () => {
    let nodes: readonly NodeView[] = [rig]
    const metrics = metricsOf([], { snapshot: () => ({ nodes, overview: overview() }) })
    await metrics.expose()

    nodes = [nodeView('rig', { state: 'paused' })]

    expect(await lines(metrics, 'fleet_inflight')).toEqual([])
    expect(await lines(metrics, 'fleet_node_state')).toEqual(['fleet_node_state{node="rig",state="paused"} 1'])
  })

  test('waiting and held requests are counted from their phases', async () => {
    const facts = [
      arrived(job({ id: 'a' })),
      phase(0, 'waiting', { request: 'a' }),
      arrived(job({ id: 'b' })),
      phase(0, 'waiting', { request: 'b', node: 'rig', model: 'qwen3:8b' }),
      arrived(job({ id: 'c' })),
      placed(0, [eliminated('rig', 'offline')], HOLD, { request: 'c' }),
      phase(0, 'held', { request: 'c' }),
      arrived(job({ id: 'd' })),
      placed(0, [ranked('rig', [0])], start('rig'), { request: 'd' }),
      phase(0, 'prefill', { request: 'd' }),
    ]
    const metrics = metricsOf(facts, { nodes: [rig] })

    expect(await lines(metrics, 'fleet_waiting')).toEqual([
      'fleet_waiting{node="rig",model="qwen3:8b"} 1',
      'fleet_waiting{node="",model="qwen3:8b"} 1',
    ])
    expect(await lines(metrics, 'fleet_held')).toEqual(['fleet_held{reason="offline"} 1'])
  })

  test('actors by machine, build and process', async () => {
    const metrics = metricsOf([], {
      actors: () => ({ request: 5 }),
      commit: 'abc',
    })
    const page = await metrics.expose()

    expect(page).toContain('fleet_actors{machine="request"} 5\n')
    expect(page).toContain(`fleet_build_info{version="0.1.0",commit="abc",runtime="bun ${Bun.version}"} 1\n`)
    expect(page).toMatch(/^process_resident_memory_bytes \d+/m)
    expect(page).not.toContain('nodejs_')
    expect(metrics.contentType).toStartWith('text/plain; version=0.0.4')
  })

  test('lateness of the event loop is measured', async () => {
    const metrics = metricsOf([])
    await Bun.sleep(280)

    expect(await lines(metrics, 'fleet_event_loop_lag_seconds_count')).not.toEqual([])
  })
})

test('a scrape of 200 nodes with 20 models each is cheap', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `qwen3:${i}`)
  const nodes = Array.from({ length: 200 }, (_, n) =>
    nodeView(`node-${n}`, {
      memoryGb: 24,
      freeGb: 3,
      resident: names.map((name) => ({ name, state: 'ready', memoryGb: 1 })),
      queues: names.map((model) => ({
        node: `node-${n}`,
        model,
        slots: 4,
        slotsBasis: 'reported',
        inFlight: 1,
        waiting: 0,
        lingering: 0,
      })),
    }),
  )
  const facts = nodes.flatMap(({ name }) =>
    names.map((model) => settled(9, { outcome: outcome({ node: name, model }) })),
  )
  const metrics = metricsOf(facts, { nodes })
  await metrics.expose()
  await metrics.expose()

  const taken = startWatch()
  const page = await metrics.expose()
  const tookMs = taken()

  expect(page.split('\n').length).toBeGreaterThan(30_000)
  // Aim: 20 ms on an idle machine.
  expect(tookMs).toBeLessThan(150)
})

test('every line of the page is well formed and every family is described once', async () => {
  const page = await metricsOf(ordinary(), { nodes: [nodeView('rig')] }).expose()
  const described = page.match(/^# TYPE \S+/gm) ?? []

  expect(new Set(described).size).toBe(described.length)
  for (const line of page.trimEnd().split('\n')) {
    expect(line).toMatch(/^(#.*|[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [-+0-9.e]+|)$/)
  }
})
