/** `[score]`: points and thresholds of policy `warmth`. Defaults are the seed's. */
export interface ScoreConfig {
  readonly roleLargeThresholdGb: number
  readonly roleSmallThresholdGb: number
  readonly warmth: {
    readonly hot: number
    readonly recent: number
    readonly onDisk: number
    readonly recentWithinMs: number
  }
  readonly memoryFit: { readonly max: number }
  readonly queueDepth: { readonly perRequest: number; readonly max: number }
  readonly wait: { readonly max: number }
  readonly roleAffinity: { readonly max: number }
  readonly availability: { readonly max: number }
  readonly contextFit: { readonly max: number }
  readonly session: { readonly max: number }
}

/** `[cost]`: weights of policy `steady`; the lowest sum wins. Defaults are the seed's. */
export interface CostConfig {
  readonly active: number
  readonly queued: number
  readonly latency: number
  readonly jobCost: number
  readonly throughput: number
  readonly distance: number
  readonly kvPressure: number
  readonly gpuUtil: number
  /** A cold node is taken only when every node that holds the model is full. */
  readonly spill: boolean
}

export const DEFAULT_SCORE: ScoreConfig = {
  roleLargeThresholdGb: 20,
  roleSmallThresholdGb: 8,
  warmth: { hot: 50, recent: 30, onDisk: 10, recentWithinMs: 1_800_000 },
  memoryFit: { max: 20 },
  queueDepth: { perRequest: 6, max: 30 },
  wait: { max: 25 },
  roleAffinity: { max: 25 },
  availability: { max: 10 },
  contextFit: { max: 15 },
  session: { max: 20 },
}

export const DEFAULT_COST: CostConfig = {
  active: 100,
  queued: 10,
  latency: 5,
  jobCost: 2,
  throughput: -3,
  distance: 1,
  kvPressure: 15,
  gpuUtil: 15,
  spill: true,
}
