import { collectDefaultMetrics, type Registry } from 'prom-client'

/** Its own loop monitor is not kept, so it need not be exact. */
const LOOP_MONITOR_MS = 1_000

/** Registers the usual `process_*`; the `nodejs_*` beside them are empty or wrong under Bun and are left out. */
export const registerProcessMetrics = (registry: Registry): void => {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_MONITOR_MS })
  for (const { name } of registry.getMetricsAsArray()) {
    if (!name.startsWith('process_')) registry.removeSingleMetric(name)
  }
}
