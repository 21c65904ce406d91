import type { Static } from '@sinclair/typebox'
import { DEFAULT_PRIORITIES } from '../domain/config'
import { CAPABILITIES } from '../domain/job'
import { NODE_KINDS } from '../domain/node'
import { POLICY_NAMES } from '../domain/policies'
import { DEFAULT_COST, DEFAULT_SCORE } from '../domain/score'
import {
  atLeastZero,
  duration,
  list,
  listener,
  named,
  optional,
  points,
  positive,
  share,
  table,
  tables,
  text,
  wholeNumber,
  word,
  yesNo,
} from './kinds'

/** How a secret is named; the secret itself never stands in the file. */
const secretSource = {
  key_env: optional(text('variable')),
  key_file: optional(text('text')),
}

const server = table(
  {
    listen: listener('127.0.0.1:11435'),
    max_body_mb: wholeNumber(1, 4096, { default: 64 }),
    max_buffered_mb: wholeNumber(1, 1_000_000, { default: 1024 }),
    shutdown_grace: duration('60s', { min: '0s' }),
    hold_headers: duration('10s', { min: '0s' }),
    loading_notes: word(['off', 'comment'], { noun: 'kind of note', default: 'comment', later: ['reasoning'] }),
    strip_billing_header: yesNo(true),
    repair_tool_calls: yesNo(false),
  },
  ['public_url', 'base_path', 'trusted_proxies', 'tls'],
)

const scope = word(['inference', 'metrics', 'admin', 'node'], { noun: 'scope' })

const classes = ['critical', 'normal', 'batch'] as const
const policyWord = { noun: 'policy', later: ['fastest'] } as const

const auth = table({
  mode: optional(word(['open', 'keys'], { noun: 'mode of authentication' })),
  keys: tables({
    name: text('name'),
    ...secretSource,
    key_hash: optional(text('key_hash')),
    scopes: list(scope, { default: ['inference'] }),
    models: optional(list(text('text'))),
    priority: optional(word(classes, { noun: 'priority' })),
    policy: optional(word(POLICY_NAMES, policyWord)),
    limits: table({
      requests_per_minute: optional(wholeNumber(1, 1_000_000)),
      concurrent: optional(wholeNumber(1, 1_000_000)),
    }),
  }),
})

const discovery = table({ local: yesNo(true), every: duration('30s', { min: '1s' }) }, ['mdns', 'adopt', 'advertise'])

const kind = word(NODE_KINDS, { noun: 'kind of node', later: ['agent'] })

const role = word(CAPABILITIES, { noun: 'role' })

const nodes = tables(
  {
    name: text('name'),
    kind,
    url: optional(text('base_url')),
    base_url: optional(text('base_url')),
    residency_url: optional(text('base_url')),
    memory_gb: optional(positive(1e6)),
    vram_mb: optional(positive(1e9)),
    bandwidth_gbps: optional(positive(1e6)),
    max_concurrency: optional(wholeNumber(1, 10_000)),
    roles: optional(list(role)),
    models: optional(list(text('text'))),
    tags: list(text('text'), { default: [] }),
    distance: atLeastZero(0),
    keep_alive: optional(text('keep_alive')),
    context_tokens: optional(wholeNumber(1, 100_000_000)),
    ...secretSource,
  },
  ['schedule', 'capacity'],
)

const aliases = named(
  text('text'),
  list(text('text')),
  table({ models: list(text('text')), across_kinds: yesNo(true) }),
)

const sameModel = tables({ id: text('text'), names: list(text('text')) })

const policy = table(
  {
    use: word(POLICY_NAMES, { ...policyWord, default: 'residency' }),
    hold_timeout: duration('30s', { min: '0s' }),
    rescore_every: duration('2s', { min: '50ms' }),
    swap_after: duration('15s', { min: '0s' }),
    retries: wholeNumber(0, 100, { default: 2 }),
  },
  ['auto_pull', 'session_header'],
)

const { warmth: hotness, memoryFit, queueDepth, wait, roleAffinity, availability, contextFit, session } = DEFAULT_SCORE

const score = table({
  role_large_threshold_gb: atLeastZero(DEFAULT_SCORE.roleLargeThresholdGb),
  role_small_threshold_gb: atLeastZero(DEFAULT_SCORE.roleSmallThresholdGb),
  warmth: table({
    hot: points(hotness.hot),
    recent: points(hotness.recent),
    on_disk: points(hotness.onDisk),
    recent_within: duration('30m', { min: '0s' }),
  }),
  memory_fit: table({ max: points(memoryFit.max) }),
  queue_depth: table({ per_request: points(queueDepth.perRequest), max: points(queueDepth.max) }),
  wait: table({ max: points(wait.max) }),
  role_affinity: table({ max: points(roleAffinity.max) }),
  availability: table({ max: points(availability.max) }),
  context_fit: table({ max: points(contextFit.max) }),
  session: table({ max: points(session.max) }),
})

const cost = table({
  active: points(DEFAULT_COST.active),
  queued: points(DEFAULT_COST.queued),
  latency: points(DEFAULT_COST.latency),
  job_cost: points(DEFAULT_COST.jobCost),
  throughput: points(DEFAULT_COST.throughput),
  distance: points(DEFAULT_COST.distance),
  kv_pressure: points(DEFAULT_COST.kvPressure),
  gpu_util: points(DEFAULT_COST.gpuUtil),
  spill: yesNo(DEFAULT_COST.spill),
})

const priorities = table({
  default: word(classes, { noun: 'priority', default: DEFAULT_PRIORITIES.default }),
  order: list(word(classes, { noun: 'priority' }), { default: [...classes] }),
  critical: table({ queue_allowance: positive(1000, DEFAULT_PRIORITIES.criticalQueueAllowance) }),
  batch: table({ max_share: share(DEFAULT_PRIORITIES.batchMaxShare), max_wait: duration('30m') }),
})

const limits = table(
  {
    concurrent: optional(wholeNumber(1, 1_000_000)),
    requests_per_minute: optional(wholeNumber(1, 1_000_000)),
    waiting_total: wholeNumber(0, 10_000_000, { default: 10_000 }),
    waiting_per_model: wholeNumber(0, 10_000_000, { default: 2000 }),
    queue_per_node: wholeNumber(0, 10_000_000, { default: 50 }),
    connect_timeout: duration('3s'),
    load_timeout_min: duration('5m'),
    first_token_timeout: duration('10m'),
    stream_idle_timeout: duration('2m'),
    total_timeout: optional(duration()),
    video_timeout: duration('2h'),
    connection_idle: duration('15s', { min: '0s' }),
  },
  ['prompt_tokens'],
)

const health = table({
  poll_every: duration('2s', { min: '100ms' }),
  poll_timeout: duration('5s'),
  offline_after: wholeNumber(1, 1000, { default: 3 }),
  breaker_failures: wholeNumber(1, 100_000, { default: 5 }),
  breaker_window: duration('30s'),
  breaker_retry: duration('5s'),
  breaker_retry_max: duration('60s'),
  stall_after: duration('60s'),
  stall_requests: wholeNumber(1, 100_000, { default: 3 }),
})

const state = table(
  {
    backend: word(['memory', 'sqlite'], { noun: 'backend', default: 'sqlite', later: ['redis'] }),
    path: text('path', { default: '' }),
    keep_traces: duration('7d', { min: '0s', max: '3650d' }),
  },
  ['redis_url_env', 'keep_latency'],
)

const metrics = table({
  enabled: yesNo(true),
  max_models: wholeNumber(0, 100_000, { default: 200 }),
  per_key: yesNo(false),
})

const log = table({
  level: word(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], { noun: 'log level', default: 'info' }),
  format: word(['auto', 'pretty', 'json'], { noun: 'log format', default: 'auto' }),
})

/** Everything that `fleet.toml` may hold, with defaults and bounds. The environment's names are derived from it. */
export const FleetFile = table(
  {
    // The version says how the file is to be read, so no variable may claim it for a file that says otherwise.
    version: wholeNumber(1, 1, { default: 1, fileOnly: true }),
    server,
    auth,
    discovery,
    nodes,
    aliases,
    same_model: sameModel,
    policy,
    score,
    cost,
    priorities,
    limits,
    health,
    state,
    metrics,
    log,
  },
  ['ui', 'prewarm', 'rebalance', 'lending', 'links', 'guardians', 'cluster', 'tracing'],
)

/** The file's content, decoded: durations in ms, listeners and URLs parsed. Names are those of the file. */
export type Settings = Static<typeof FleetFile>
export type NodeSettings = Settings['nodes'][number]
export type AliasSettings = Settings['aliases'][string]
export type KeySettings = Settings['auth']['keys'][number]
