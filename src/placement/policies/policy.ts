import type { Job } from '../../domain/job'
import type { Candidate, Decision, Ranked } from '../../domain/placement'
import type { CostConfig, ScoreConfig } from '../../domain/score'

export interface PolicyContext {
  readonly now: number
  /** Expected service and load times in ms, where anything was measured. */
  readonly serviceMs: (candidate: Candidate) => number | undefined
  readonly loadMs: (candidate: Candidate) => number | undefined
  /** 75th percentile of the service times of the pair, in ms. */
  readonly p75Ms: (candidate: Candidate) => number | undefined
  /** Moving averages of a node over all its models: total time in ms, output tokens/s. */
  readonly nodeMeans: (node: string) => { readonly latencyMs?: number; readonly tokensPerSecond?: number } | undefined
  /** Where the session's last turn ran, if its prefix is still there. */
  readonly sessionNode: (job: Job) => string | undefined
  /** 0 <= x < 1 */
  readonly random: () => number
  readonly score: ScoreConfig
  readonly cost: CostConfig
}

export interface Choice {
  readonly decision: Decision
  /** Best first. */
  readonly ranked: readonly Ranked[]
}

/**
 * A named way to rank the survivors of elimination and to answer with one of five things: `start` and `load` reserve at
 * once, `bind` joins a queue, `wait` stays in the waiting room, `hold` means that nothing can serve it now.
 * An early policy answers `bind`; a late one `start`, `load` or `wait`. Survivors are never empty.
 */
export interface Policy {
  readonly name: string
  readonly binding: 'early' | 'late'
  choose(survivors: readonly Candidate[], job: Job, context: PolicyContext): Choice
}
