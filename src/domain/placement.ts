import type { Lane } from './job'
import type { Breaker, Health, NodeDescription, ResidentModel, StoredModel } from './node'

/** A node that a request could not reach: no engine has seen it, so it may go there again once the node is back. */
export interface Unreached {
  readonly node: string
  /** The node is back when it has answered a poll that began then or later, in ms since the epoch. */
  readonly since: number
}

/** One (node, model) pair as a decision sees it: plain data from live snapshots and the ledger. */
export interface Candidate {
  readonly node: NodeDescription
  /** As the node lists it, or as the fleet calls it where that is another name. */
  readonly model: string
  /** Index into the job's chain. */
  readonly choice: number
  readonly stored: StoredModel
  /** Present when the model is in memory or being loaded. */
  readonly resident?: ResidentModel
  readonly health: Health
  readonly admission: 'open' | 'paused' | 'draining'
  readonly breaker: Breaker
  /** Its polls take longer than the time between them: what is known of it is old. */
  readonly isStale?: boolean
  /** It refused a request a moment ago because it was busy. */
  readonly isRefusing?: boolean
  readonly pressure?: 'normal' | 'warn' | 'critical'
  /** What the node cannot do now, while its other lanes work. */
  readonly lanesDown?: readonly Lane[]
  readonly canLoad: boolean
  /** A request for a model that is not in memory makes the engine load it. */
  readonly loadsOnRequest?: boolean
  /** Requests of ours that hold a slot of this node:model, reservations and lingering cancels included. */
  readonly inFlight: number
  /** Requests bound to its queue that wait there. */
  readonly bound: number
  /** Foreign requests: the engine's own running count minus ours, at least 0. */
  readonly foreign: number
  readonly slots: number
  readonly slotsBasis: SlotsBasis
  /** Slots still free under the node:model limit and the node's cap over models. */
  readonly free: number
  /** Of batch work: slots that its share has left; counted in `free`. */
  readonly shareLeft?: number
  /** Requests of ours on the node over all models. */
  readonly nodeInFlight: number
  /** The model that the node is loading for us now. */
  readonly loading?: string
  /** Other models in its memory, least recently used first. */
  readonly others: readonly OtherResident[]
  /** Memory that a load could use without evicting, in GB; absent when unknown. */
  readonly availableGb?: number
  /** What the model needs in memory, in GB, measured where it was seen loaded; absent when unknown. */
  readonly costGb?: number
  readonly maxResident?: number
  /** The model whose turn it is on the node: nothing else starts there until it is loaded. */
  readonly turnOf?: string
  /** Others that this request must not push out. */
  readonly keeps?: readonly string[]
  /** This request could not reach its node, which has not answered a poll since. */
  readonly isUnreached?: true
  /** The most models that were seen in its memory at once. */
  readonly mostResident?: number
  /** Another model was loaded since the report that lists this one as resident. */
  readonly isUnverified?: boolean
  /** Our load of it has just ended: what the engine tells of its slots is still to come. */
  readonly isJustLoaded?: boolean
  /** When the model left the node's memory, in ms since the epoch, where that was seen. */
  readonly unloadedAt?: number
  /** Memory of the node for models, in GB, where it is known. */
  readonly totalGb?: number
  /** 0 to 1, where the node reports it. */
  readonly gpuUtil?: number
  /** 0 to 1, on nodes that learn their capacity. */
  readonly availability?: number
  /** Monotonic count of the last time that this node was chosen; breaks ties. */
  readonly lastChosen: number
}

export interface OtherResident {
  readonly name: string
  readonly memoryGb?: number
  /** Answering or reserved now; never evicted. */
  readonly busy: boolean
}

export type SlotsBasis = 'configured' | 'reported' | 'learned' | 'memory' | 'default'

/** A policy's ordered terms: compared left to right, lower is better. */
export type Rank = readonly number[]

export interface Ranked {
  readonly verdict: 'ranked'
  readonly node: string
  readonly model: string
  readonly rank: number | Rank
  readonly terms: Readonly<Record<string, number | string>>
  readonly tie?: string
}

export interface Eliminated {
  readonly verdict: 'eliminated'
  readonly node: string
  readonly model: string
  readonly reason: string
  readonly need?: number
  readonly have?: number
  readonly unit?: string
}

export type Verdict = Ranked | Eliminated

export type DecisionKind = 'start' | 'load' | 'bind' | 'wait' | 'hold'

/** The five answers of a policy. */
export interface Decision {
  readonly kind: DecisionKind
  readonly node?: string
  readonly model?: string
  /** Index of the model in the job's chain, when it is not the first. */
  readonly choice?: number
  /** Idle models that a load pushes out. */
  readonly evicts?: readonly string[]
  readonly untilMs?: number
  /** Closed set, see `because`. */
  readonly reason: string
}

export interface Placement {
  readonly decision: Decision
  readonly verdicts: readonly Verdict[]
  readonly policy: string
}
