import type { DialectName, Job } from './job'
import type { Admission, Breaker, Health, NodeKind } from './node'
import type { Decision, Verdict } from './placement'

export type PlacementCause = 'arrival' | 'hold' | 'retry' | 'rebalance' | 'returned' | 'freed'

export type PhaseName = 'placing' | 'held' | 'waiting' | 'loading' | 'prefill' | 'generating'

export type TerminalStatus = 'completed' | 'incomplete' | 'client_disconnected' | 'rejected' | 'failed' | 'expired'

export interface Estimate {
  readonly valueMs: number
  readonly basis: 'measured' | 'history' | 'default'
  readonly samples: number
}

export interface Outcome {
  readonly end: TerminalStatus
  /** HTTP status that the client got; 499 for one that left. */
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly node?: string
  readonly model?: string
  /** The phase in which it ended. */
  readonly phase: PhaseName
  readonly tokensIn?: number
  readonly tokensOut?: number
  /** The answer ran out of tokens before anything but thinking was said. */
  readonly thinkingExhausted?: true
  /** Calls of tools whose broken arguments were repaired on the way. */
  readonly toolCallsRepaired?: number
  readonly ttftMs?: number
  /** From sending it to the node that answered until the last byte. */
  readonly serviceMs?: number
  /** From sending it to the first byte. */
  readonly firstByteMs?: number
  readonly tokensPerSecond?: number
  readonly bytes: number
  /** Time that it kept nodes at work, over all attempts. */
  readonly engineMs?: number
  /** Failed attempts that were followed by another one. */
  readonly retries: number
}

/** What went wrong on a node. `class` is closed so that it can be a metric label. */
export interface Failure {
  readonly class:
    | 'connect'
    | 'connect_timeout'
    | 'reset'
    | 'status'
    | 'overloaded'
    /** Its server answers already, but only that the engine is not ready yet. */
    | 'starting'
    | 'bad_content'
    | 'first_byte_timeout'
    | 'idle_timeout'
    | 'total_cap'
    | 'truncated'
    | 'error_event'
    | 'protocol'
    | 'tls'
    | 'dns'
    | 'rejected'
    /** The node lists the model and does not know it when asked. */
    | 'model_missing'
  readonly message: string
  readonly status?: number
  /** Bytes of the answer that had arrived. */
  readonly bytes: number
  readonly elapsedMs: number
  /** It was sent on a connection that had been idle, and that gave no answer: the connection failed, not the node. */
  readonly stale?: true
}

export type ConfigValue = string | number | boolean | null | readonly string[]

/** What made the router read its configuration. */
export type ReloadCause = 'start' | 'file' | 'signal' | 'api'

/** What is wrong with a configuration that was not taken. Line and column from 1. */
export interface ConfigProblem {
  readonly message: string
  /** The key; empty for the file as a whole. */
  readonly path: string
  readonly file?: string
  readonly line?: number
  readonly column?: number
}

/** Everything worth knowing, in the past tense. Logs, metrics, records and streams are sinks of this one union. */
export type Fact =
  | { readonly type: 'request.arrived'; readonly at: number; readonly job: Job }
  | {
      readonly type: 'request.placed'
      readonly at: number
      readonly request: string
      readonly cause: PlacementCause
      readonly attempt: number
      readonly policy: string
      readonly verdicts: readonly Verdict[]
      readonly decision: Decision
      /** Until the end of the answer, where a deadline made it worth knowing. */
      readonly estimate?: Estimate
      readonly tookMs: number
    }
  | {
      readonly type: 'request.phase'
      readonly at: number
      readonly request: string
      readonly phase: PhaseName
      readonly node?: string
      readonly model?: string
      readonly estimate?: Estimate
    }
  | {
      readonly type: 'attempt.failed'
      readonly at: number
      readonly request: string
      readonly node: string
      readonly model: string
      readonly attempt: number
      readonly failure: Failure
      /** It will be tried elsewhere, if another node is there for it. */
      readonly retried: boolean
    }
  | {
      readonly type: 'request.settled'
      readonly at: number
      readonly request: string
      readonly dialect: DialectName
      readonly asked: string
      readonly priority: string
      /** Name of the caller's key. */
      readonly key?: string
      readonly residency?: 'resident' | 'cold'
      readonly arrivedAt: number
      readonly outcome: Outcome
    }
  | {
      readonly type: 'node.found'
      readonly at: number
      readonly node: string
      readonly kind: NodeKind
      readonly url: string
      readonly version?: string
    }
  | {
      readonly type: 'node.added'
      readonly at: number
      readonly node: string
      readonly kind: NodeKind
      readonly url: string
    }
  | { readonly type: 'node.removed'; readonly at: number; readonly node: string }
  | {
      /** Other settings by a new configuration. */
      readonly type: 'node.changed'
      readonly at: number
      readonly node: string
      readonly kind: NodeKind
      readonly url: string
      /** Another server under the same name: nothing that was known of the old one holds. */
      readonly replaced: boolean
    }
  | {
      readonly type: 'node.health'
      readonly at: number
      readonly node: string
      readonly health: Health
      readonly reason?: string
    }
  | { readonly type: 'node.admission'; readonly at: number; readonly node: string; readonly admission: Admission }
  | {
      readonly type: 'node.breaker'
      readonly at: number
      readonly node: string
      readonly breaker: Breaker
      readonly reason?: string
      readonly retryAt?: number
    }
  | {
      /** Nothing for other models starts there any more until this one is loaded. */
      readonly type: 'turn.began'
      readonly at: number
      readonly node: string
      readonly model: string
      readonly waitedMs: number
    }
  | {
      readonly type: 'load.started'
      readonly at: number
      readonly node: string
      readonly model: string
      readonly cause: string
      readonly evicts: readonly string[]
    }
  | {
      readonly type: 'load.finished'
      readonly at: number
      readonly node: string
      readonly model: string
      readonly tookMs: number
    }
  | {
      readonly type: 'load.failed'
      readonly at: number
      readonly node: string
      readonly model: string
      readonly tookMs: number
      readonly message: string
    }
  | {
      readonly type: 'model.evicted'
      readonly at: number
      readonly node: string
      readonly model: string
      readonly by: string
    }
  | {
      readonly type: 'actor.failed'
      readonly at: number
      readonly actor: string
      readonly machine: string
      readonly message: string
      readonly restarted: boolean
    }
  | {
      readonly type: 'config.changed'
      readonly at: number
      /** As in the file; entries of lists by their name: `nodes.box-2.max_concurrency`. */
      readonly key: string
      /** As written, with its unit; null where there was or is none; `changed` for a secret. */
      readonly from: ConfigValue
      readonly to: ConfigValue
      /** It takes effect at the next start only. */
      readonly waits?: true
    }
  | {
      readonly type: 'config.applied'
      readonly at: number
      readonly cause: ReloadCause
      /** Keys that took effect. */
      readonly changed: number
      /** Keys that differ from what runs and wait for a restart. */
      readonly waiting: readonly string[]
    }
  | {
      readonly type: 'config.rejected'
      readonly at: number
      readonly cause: ReloadCause
      readonly problems: readonly ConfigProblem[]
    }
  | { readonly type: 'fleet.draining'; readonly at: number; readonly running: number; readonly graceMs: number }
  | { readonly type: 'fleet.stopped'; readonly at: number; readonly cut: number }

export type FactOf<T extends Fact['type']> = Extract<Fact, { type: T }>
