import type { Estimate, Outcome, PhaseName, PlacementCause } from './facts'
import type { TokenCount } from './job'
import type { Decision, Verdict } from './placement'

export interface Round {
  /** Milliseconds since arrival. */
  readonly atMs: number
  readonly cause: PlacementCause
  readonly policy: string
  /** The best eight candidates; the rest is counted in `more`. */
  readonly nodes: readonly Verdict[]
  readonly more?: { readonly ranked: number; readonly eliminated: Readonly<Record<string, number>> }
  readonly decision: Decision
  /** Until the end of the answer, as it was expected then, where the request has a deadline. */
  readonly estimate?: Estimate
  /** How often the same verdicts came again. */
  readonly repeated?: number
}

export interface Phase {
  readonly name: PhaseName
  readonly node?: string
  readonly fromMs: number
  readonly toMs?: number
  readonly estimate?: Estimate
}

export interface Attempt {
  readonly node: string
  readonly model: string
  readonly atMs: number
  readonly class: string
  readonly message: string
  readonly status?: number
  readonly bytes: number
  readonly elapsedMs: number
  readonly retried: boolean
}

/** One request explained: the contract behind page, terminal, headers and log. Never a body. */
export interface DecisionRecord {
  readonly id: string
  readonly at: number
  readonly asked: {
    readonly model: string
    readonly dialect: string
    readonly operation: string
    readonly stream: boolean
    readonly priority: string
    readonly key?: string
    readonly tags: readonly string[]
    readonly session?: string
    readonly clientRequestId?: string
    readonly promptTokens: TokenCount
  }
  readonly models: readonly string[]
  readonly rounds: readonly Round[]
  readonly phases: readonly Phase[]
  readonly failures: readonly Attempt[]
  readonly version: string
  readonly outcome?: Outcome & {
    readonly totalMs: number
    readonly residency?: 'resident' | 'cold'
    /** The model that answered, when it is not the first of the chain. */
    readonly fallback?: string
  }
}
