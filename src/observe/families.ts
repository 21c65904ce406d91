import { createCounter, createGauge, createHistogram, type Family } from './series'

/** Seconds until the first token, and seconds of waiting. */
const WAITS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320]
const LATENCIES = [...WAITS, 640, 1_200]
const PER_TOKEN = [0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1]
const PLACEMENTS = [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.1]
const LAGS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]

/**
 * Every metric of the router, by the word that the code uses. Histograms carry no model: nodes times models times
 * buckets would be most of a scrape.
 */
export const createFamilies = () => ({
  requests: createCounter({
    name: 'fleet_requests_total',
    help: 'Requests that ended, by where they ran and how they ended.',
    labels: ['node', 'model', 'dialect', 'outcome'],
  }),
  latency: createHistogram({
    name: 'fleet_request_latency_seconds',
    help: 'From arrival to the end of the answer.',
    labels: ['node', 'outcome'],
    bounds: LATENCIES,
  }),
  firstToken: createHistogram({
    name: 'fleet_time_to_first_token_seconds',
    help: 'From arrival to the first byte of the answer.',
    labels: ['node', 'residency'],
    bounds: WAITS,
  }),
  perOutputToken: createHistogram({
    name: 'fleet_time_per_output_token_seconds',
    help: 'Time from one token of a stream to the next, on average over the answer.',
    labels: ['node'],
    bounds: PER_TOKEN,
  }),
  queueWait: createHistogram({
    name: 'fleet_queue_wait_seconds',
    help: 'Time spent waiting for a slot, of requests that started.',
    labels: ['node', 'priority'],
    bounds: WAITS,
  }),
  holdWait: createHistogram({
    name: 'fleet_hold_wait_seconds',
    help: 'Time during which nothing could serve a request, by what ended it.',
    labels: ['outcome'],
    bounds: WAITS,
  }),
  modelLoad: createHistogram({
    name: 'fleet_model_load_seconds',
    help: 'Time to bring a model into memory.',
    labels: ['node', 'cause'],
    bounds: WAITS,
  }),
  residencyHits: createCounter({
    name: 'fleet_residency_hits_total',
    help: 'Requests that found their model in memory.',
    labels: ['node', 'model'],
  }),
  residencyMisses: createCounter({
    name: 'fleet_residency_misses_total',
    help: 'Requests whose model had to be loaded.',
    labels: ['node', 'model'],
  }),
  tokens: createCounter({
    name: 'fleet_tokens_total',
    help: 'Tokens as the nodes reported them.',
    labels: ['node', 'model', 'direction'],
  }),
  keyRequests: createCounter({
    name: 'fleet_key_requests_total',
    help: 'Requests that ended, by the key of the caller; with metrics.per_key.',
    labels: ['key', 'outcome'],
  }),
  keyTokens: createCounter({
    name: 'fleet_key_tokens_total',
    help: 'Tokens by the key of the caller; with metrics.per_key.',
    labels: ['key', 'direction'],
  }),
  keyEngineSeconds: createCounter({
    name: 'fleet_key_engine_seconds_total',
    help: 'Time that the requests of a key kept nodes at work; with metrics.per_key.',
    labels: ['key'],
  }),
  inFlight: createGauge({
    name: 'fleet_inflight',
    help: 'Requests at a node now.',
    labels: ['node', 'model'],
  }),
  waiting: createGauge({
    name: 'fleet_waiting',
    help: 'Requests that wait for a slot; the node is empty while they are bound to none.',
    labels: ['node', 'model'],
  }),
  slots: createGauge({
    name: 'fleet_slots',
    help: 'Requests that may run at once.',
    labels: ['node', 'model'],
  }),
  held: createGauge({
    name: 'fleet_held',
    help: 'Requests that nothing can serve now.',
    labels: ['reason'],
  }),
  bufferedBytes: createGauge({
    name: 'fleet_buffered_bytes',
    help: 'Bytes of request bodies in memory; server.max_buffered_mb bounds them.',
  }),
  healthyNodes: createGauge({ name: 'fleet_healthy_nodes', help: 'Nodes that answer and take work.' }),
  nodeUp: createGauge({
    name: 'fleet_node_up',
    help: '1 when the node answers its polls.',
    labels: ['node', 'kind'],
  }),
  nodeState: createGauge({
    name: 'fleet_node_state',
    help: '1 for the state that the node is in.',
    labels: ['node', 'state'],
  }),
  nodeMemory: createGauge({
    name: 'fleet_node_memory_bytes',
    help: 'Memory for models, by use.',
    labels: ['node', 'use'],
  }),
  modelResident: createGauge({
    name: 'fleet_model_resident_bytes',
    help: 'Memory that a loaded model takes.',
    labels: ['node', 'model'],
  }),
  placements: createCounter({
    name: 'fleet_placements_total',
    help: 'Placement decisions, by policy and reason.',
    labels: ['policy', 'why'],
  }),
  placementDuration: createHistogram({
    name: 'fleet_placement_duration_seconds',
    help: 'Time to decide one placement.',
    labels: ['policy'],
    bounds: PLACEMENTS,
  }),
  eliminations: createCounter({
    name: 'fleet_eliminations_total',
    help: 'Nodes ruled out of a placement, by reason.',
    labels: ['node', 'reason'],
  }),
  retries: createCounter({
    name: 'fleet_retries_total',
    help: 'Attempts that failed on the node and were made again, elsewhere or there once it was back.',
    labels: ['node', 'code'],
  }),
  fallbacks: createCounter({
    name: 'fleet_fallbacks_total',
    help: 'Answers by another model of the chain than its first.',
    labels: ['from', 'to'],
  }),
  evictions: createCounter({
    name: 'fleet_evictions_total',
    help: 'Models that left the memory of a node.',
    labels: ['node', 'model', 'by'],
  }),
  billingHeaders: createCounter({
    name: 'fleet_billing_headers_removed_total',
    help: 'Prompts out of which a line was taken that changes with every request.',
  }),
  toolCallsRepaired: createCounter({
    name: 'fleet_tool_calls_repaired_total',
    help: 'Calls of tools whose broken arguments were repaired; with server.repair_tool_calls.',
    labels: ['node', 'model'],
  }),
  actors: createGauge({ name: 'fleet_actors', help: 'Live actors.', labels: ['machine'] }),
  actorRestarts: createCounter({
    name: 'fleet_actor_restarts_total',
    help: 'Actors that failed and were started again.',
    labels: ['machine'],
  }),
  eventLoopLag: createHistogram({
    name: 'fleet_event_loop_lag_seconds',
    help: 'How late a timer ran.',
    bounds: LAGS,
  }),
  configReloads: createCounter({
    name: 'fleet_config_reloads_total',
    help: 'Configurations that were read while the router ran, by what came of it.',
    labels: ['outcome'],
  }),
  configSuccess: createGauge({
    name: 'fleet_config_last_success_timestamp_seconds',
    help: 'When the configuration in force was last read and found valid, in seconds since the epoch.',
  }),
  buildInfo: createGauge({
    name: 'fleet_build_info',
    help: 'Always 1.',
    labels: ['version', 'commit', 'runtime'],
  }),
})

export type Families = ReturnType<typeof createFamilies>

/** Those that exist only with `metrics.per_key`. */
export const keyFamilies = ({ keyRequests, keyTokens, keyEngineSeconds }: Families): readonly Family[] => [
  keyRequests,
  keyTokens,
  keyEngineSeconds,
]

export const allFamilies = (families: Families): readonly Family[] => Object.values(families)
