import type { Config, KeyConfig } from '../domain/config'
import type { NodeDescription } from '../domain/node'
import { effectiveMode } from './auth'
import type { Settings } from './schema'

/** As everywhere here, MB and GB are powers of ten. */
const BYTES_PER_MB = 1_000_000

/** All bodies together; where it is not written it grows with what one may be. */
export const effectiveBufferedMb = ({ server }: Settings): number =>
  Math.max(server.max_buffered_mb, server.max_body_mb)

/** The frozen configuration, in the program's own names and units. */
export const buildConfig = (
  settings: Settings,
  keys: readonly KeyConfig[],
  nodes: readonly NodeDescription[],
  { aliases, sameModel }: Required<Pick<Config, 'aliases' | 'sameModel'>>,
): Config => {
  const { server, discovery, policy, score, cost, priorities, limits, health, state, metrics, log } = settings
  return deepFreeze<Config>({
    server: {
      host: server.listen.host,
      port: server.listen.port,
      maxBodyBytes: server.max_body_mb * BYTES_PER_MB,
      maxBufferedBytes: effectiveBufferedMb(settings) * BYTES_PER_MB,
      shutdownGraceMs: server.shutdown_grace,
      holdHeadersMs: server.hold_headers,
      loadingNotes: server.loading_notes,
      stripBillingHeader: server.strip_billing_header,
      repairToolCalls: server.repair_tool_calls,
    },
    auth: { mode: effectiveMode(settings), keys },
    discovery: { local: discovery.local, everyMs: discovery.every },
    nodes,
    aliases,
    sameModel,
    policy: {
      use: policy.use,
      holdTimeoutMs: policy.hold_timeout,
      rescoreEveryMs: policy.rescore_every,
      swapAfterMs: policy.swap_after,
      retries: policy.retries,
    },
    score: {
      roleLargeThresholdGb: score.role_large_threshold_gb,
      roleSmallThresholdGb: score.role_small_threshold_gb,
      warmth: {
        hot: score.warmth.hot,
        recent: score.warmth.recent,
        onDisk: score.warmth.on_disk,
        recentWithinMs: score.warmth.recent_within,
      },
      memoryFit: score.memory_fit,
      queueDepth: { perRequest: score.queue_depth.per_request, max: score.queue_depth.max },
      wait: score.wait,
      roleAffinity: score.role_affinity,
      availability: score.availability,
      contextFit: score.context_fit,
      session: score.session,
    },
    cost: {
      active: cost.active,
      queued: cost.queued,
      latency: cost.latency,
      jobCost: cost.job_cost,
      throughput: cost.throughput,
      distance: cost.distance,
      kvPressure: cost.kv_pressure,
      gpuUtil: cost.gpu_util,
      spill: cost.spill,
    },
    priorities: {
      default: priorities.default,
      order: priorities.order,
      criticalQueueAllowance: priorities.critical.queue_allowance,
      batchMaxShare: priorities.batch.max_share,
      batchMaxWaitMs: priorities.batch.max_wait,
    },
    limits: {
      ...(limits.concurrent === undefined ? {} : { concurrent: limits.concurrent }),
      ...(limits.requests_per_minute === undefined ? {} : { requestsPerMinute: limits.requests_per_minute }),
      waitingTotal: limits.waiting_total,
      waitingPerModel: limits.waiting_per_model,
      queuePerNode: limits.queue_per_node,
      connectTimeoutMs: limits.connect_timeout,
      loadTimeoutMinMs: limits.load_timeout_min,
      firstTokenTimeoutMs: limits.first_token_timeout,
      streamIdleTimeoutMs: limits.stream_idle_timeout,
      ...(limits.total_timeout === undefined ? {} : { totalTimeoutMs: limits.total_timeout }),
      videoTimeoutMs: limits.video_timeout,
      connectionIdleMs: limits.connection_idle,
    },
    health: {
      pollEveryMs: health.poll_every,
      pollTimeoutMs: health.poll_timeout,
      offlineAfter: health.offline_after,
      breakerFailures: health.breaker_failures,
      breakerWindowMs: health.breaker_window,
      breakerRetryMs: health.breaker_retry,
      breakerRetryMaxMs: health.breaker_retry_max,
      stallAfterMs: health.stall_after,
      stallRequests: health.stall_requests,
    },
    state: { backend: state.backend, path: state.path, keepTracesMs: state.keep_traces },
    metrics: { enabled: metrics.enabled, maxModels: metrics.max_models, perKey: metrics.per_key },
    log: { level: log.level, format: log.format },
  })
}

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
