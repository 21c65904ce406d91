import type { Job } from '../domain/job'
import type {
  Admission,
  Breaker,
  Health,
  NodeDescription,
  NodeReport,
  Pressure,
  ResidentModel,
  StoredModel,
} from '../domain/node'
import type { SlotsBasis } from '../domain/placement'
import type { Reply } from './node-gateway'
import type { LearnedNode, Parallelism } from './samples'

export interface QueueView {
  readonly node: string
  readonly model: string
  readonly slots: number
  readonly slotsBasis: SlotsBasis
  readonly inFlight: number
  /** Bound to it and waiting. */
  readonly waiting: number
  /** Given back to the node but perhaps still computed there after a cancel. */
  readonly lingering: number
  /** What the requests that overlapped there show of how many run at once, once there were any. */
  readonly parallelism?: Parallelism
}

export interface NodeView {
  readonly name: string
  readonly kind: string
  readonly url: string
  readonly origin: NodeDescription['origin']
  readonly tags: readonly string[]
  readonly version?: string
  readonly health: Health
  readonly healthReason?: string
  readonly admission: Admission
  readonly breaker: Breaker
  readonly breakerReason?: string
  readonly breakerSince?: number
  readonly breakerRetryAt?: number
  /** One word for people: `online`, `suspect`, `offline`, `paused`, `draining`, `circuit_open`, `quarantined`, `unknown`. */
  readonly state: string
  /** What to do about something odd that it reports, one sentence. */
  readonly hint?: string
  readonly lastReportAt?: number
  readonly pollMs?: number
  readonly pressure?: Pressure
  /** What it cannot do now, while it does other work. */
  readonly lanesDown?: NonNullable<NodeReport['lanesDown']>
  readonly memoryGb?: number
  readonly freeGb?: number
  readonly claimedGb?: number
  readonly maxConcurrency?: number
  readonly inFlight: number
  readonly loading?: string
  readonly models: readonly StoredModel[]
  readonly resident: readonly ResidentModel[]
  readonly queues: readonly QueueView[]
}

export interface ModelView {
  /** As the first node that listed it writes it; of an alias its own name. */
  readonly name: string
  readonly key: string
  /** Of an alias: the chain that it stands for. `nodes` are then those of the model that would be used now. */
  readonly aliasOf?: readonly string[]
  readonly nodes: readonly {
    readonly node: string
    /** The node's own name for it. */
    readonly name: string
    /** By what it is known to be the same model as on other nodes: its hash, the configuration, or its name alone. */
    readonly sameBy?: 'hash' | 'same_model' | 'name'
    readonly online: boolean
    readonly state: 'resident' | 'loading' | 'disk'
    readonly stored: StoredModel
    readonly resident?: ResidentModel
  }[]
}

export interface Waiter {
  readonly request: string
  readonly model: string
  readonly kind: 'held' | 'waiting' | 'loading' | 'bound'
  readonly node?: string
  readonly waitedMs: number
  readonly position: number
  readonly reason: string
}

export interface Overview {
  readonly instance: string
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  readonly inFlight: number
  readonly waiting: number
  readonly held: number
  readonly nodes: number
  readonly healthyNodes: number
  readonly models: number
  readonly requests: Readonly<Record<string, number>>
}

/** The whole core as the HTTP layer sees it. */
export interface Fleet {
  /** Resolves when the answer begins; rejects with a `RouterError`. The signal is the client's presence. */
  submit(job: Job, signal: AbortSignal): Promise<Reply>
  /** The client of a submitted job was sent 200 and waits on: whatever comes, that is the status that it got. */
  headersSent(request: string): void
  /** Requests of a key that are in the router. */
  running(key: string): number
  overview(): Overview
  /** Every node as it was configured or found. */
  descriptions(): readonly NodeDescription[]
  nodes(): readonly NodeView[]
  /** What was measured on the node; undefined when there is none of that name. */
  learned(name: string): LearnedNode | undefined
  /** Every model that some node lists and every alias that is no pattern, each name once. */
  models(): readonly ModelView[]
  /** The models that the name stands for, in the order in which they are tried. */
  chainOf(asked: string): readonly string[]
  queues(): readonly QueueView[]
  waiters(): readonly Waiter[]
  /** Every live actor: path, machine, state. */
  actors(): readonly {
    readonly id: string
    readonly machine: string
    readonly state: string
    readonly parent?: string
  }[]
  /** False until every configured node was asked once, or one answered. */
  ready(): boolean
  addNode(node: NodeDescription): void
  removeNode(name: string): void
  setAdmission(name: string, admission: Admission): boolean
  /** Refuses new work, lets running work end within the grace, then cuts it. */
  stop(graceMs: number): Promise<{ readonly cut: number }>
}

export type { NodeReport }
