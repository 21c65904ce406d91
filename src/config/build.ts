import type { Config, KeyConfig } from '../domain/config'
import type { NodeDescription } from '../domain/node'
import { effectiveMode } from './auth'
import type { Settings } from './schema'

/** As everywhere here, MB and GB are powers of ten. */
const BYTES_PER_MB = 1_000_000

/** The frozen configuration, in the program's own names and units. */
export const buildConfig = (
  settings: Settings,
  keys: readonly KeyConfig[],
  nodes: readonly NodeDescription[],
): Config => {
  const { server, discovery, policy, limits, health, state, metrics, log } = settings
  return deepFreeze<Config>({
    server: {
      host: server.listen.host,
      port: server.listen.port,
      maxBodyBytes: server.max_body_mb * BYTES_PER_MB,
      shutdownGraceMs: server.shutdown_grace,
      stripBillingHeader: server.strip_billing_header,
    },
    auth: { mode: effectiveMode(settings), keys },
    discovery: { local: discovery.local, everyMs: discovery.every },
    nodes,
    policy: {
      use: policy.use,
      holdTimeoutMs: policy.hold_timeout,
      rescoreEveryMs: policy.rescore_every,
      retries: policy.retries,
    },
    limits: {
      ...(limits.concurrent === undefined ? {} : { concurrent: limits.concurrent }),
      waitingTotal: limits.waiting_total,
      waitingPerModel: limits.waiting_per_model,
      queuePerNode: limits.queue_per_node,
      connectTimeoutMs: limits.connect_timeout,
      loadTimeoutMinMs: limits.load_timeout_min,
      firstTokenTimeoutMs: limits.first_token_timeout,
      streamIdleTimeoutMs: limits.stream_idle_timeout,
      ...(limits.total_timeout === undefined ? {} : { totalTimeoutMs: limits.total_timeout }),
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
    metrics: { enabled: metrics.enabled, maxModels: metrics.max_models },
    log: { level: log.level, format: log.format },
  })
}

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}
