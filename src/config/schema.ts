import type { Static } from '@sinclair/typebox'
import {
  atLeastZero,
  duration,
  list,
  listener,
  optional,
  positive,
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
    shutdown_grace: duration('60s', { min: '0s' }),
    strip_billing_header: yesNo(true),
  },
  ['public_url', 'base_path', 'trusted_proxies', 'hold_headers', 'loading_notes', 'tls'],
)

const scope = word(['inference', 'metrics', 'admin', 'node'], { noun: 'scope' })

const auth = table({
  mode: optional(word(['open', 'keys'], { noun: 'mode of authentication' })),
  keys: tables(
    {
      name: text('name'),
      ...secretSource,
      key_hash: optional(text('key_hash')),
      scopes: list(scope, { default: ['inference'] }),
    },
    ['models', 'priority', 'limits'],
  ),
})

const discovery = table({ local: yesNo(true), every: duration('30s', { min: '1s' }) }, ['mdns', 'adopt', 'advertise'])

const kind = word(['ollama', 'lmstudio', 'llamaswap', 'llamacpp', 'vllm', 'openai'], {
  noun: 'kind of node',
  later: ['sglang', 'koboldcpp', 'agent'],
})

const role = word(['chat', 'completion', 'embedding', 'vision', 'tools', 'thinking', 'insert', 'audio'], {
  noun: 'role',
  later: ['rerank', 'speech', 'image'],
})

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

const policy = table(
  {
    use: word(['residency'], { noun: 'policy', default: 'residency', later: ['warmth', 'steady', 'fastest'] }),
    hold_timeout: duration('30s', { min: '0s' }),
    rescore_every: duration('2s', { min: '50ms' }),
    retries: wholeNumber(0, 100, { default: 2 }),
  },
  ['auto_pull', 'session_header'],
)

const limits = table(
  {
    concurrent: optional(wholeNumber(1, 1_000_000)),
    waiting_total: wholeNumber(0, 10_000_000, { default: 10_000 }),
    waiting_per_model: wholeNumber(0, 10_000_000, { default: 2000 }),
    queue_per_node: wholeNumber(0, 10_000_000, { default: 50 }),
    connect_timeout: duration('3s'),
    load_timeout_min: duration('5m'),
    first_token_timeout: duration('10m'),
    stream_idle_timeout: duration('2m'),
    total_timeout: optional(duration()),
    connection_idle: duration('15s', { min: '0s' }),
  },
  ['requests_per_minute', 'prompt_tokens'],
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

const metrics = table({ enabled: yesNo(true), max_models: wholeNumber(0, 100_000, { default: 200 }) }, ['per_key'])

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
    policy,
    limits,
    health,
    state,
    metrics,
    log,
  },
  [
    'ui',
    'aliases',
    'same_model',
    'score',
    'cost',
    'prewarm',
    'rebalance',
    'priorities',
    'lending',
    'links',
    'guardians',
    'cluster',
    'tracing',
  ],
)

/** The file's content, decoded: durations in ms, listeners and URLs parsed. Names are those of the file. */
export type Settings = Static<typeof FleetFile>
export type NodeSettings = Settings['nodes'][number]
export type KeySettings = Settings['auth']['keys'][number]
