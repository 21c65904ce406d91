import type { Config } from '../../src/domain/config'
import type { Job, Priority } from '../../src/domain/job'
import type { Ledger } from '../../src/placement/ledger'
import type { Policy, PolicyContext } from '../../src/placement/policies/policy'
import type { Room } from '../../src/placement/room'
import type { Turns } from '../../src/placement/turns'
import type { Journal } from '../../src/ports/journal'
import type { Samples } from '../../src/ports/samples'
import type { Api } from '../flat'
import type { DispatcherEvent } from '../protocol'
import type { Roster } from '../roster'

export interface DispatcherContext {
  readonly ledger: Ledger
  readonly room: Room
  readonly roster: Roster
  policy: Policy
  readonly samples: Samples
  readonly journal: Journal
  config: Pick<Config, 'auth' | 'limits' | 'policy' | 'priorities' | 'score' | 'cost' | 'aliases'>
  readonly now: () => number
  /** 0 <= x < 1 */
  readonly random: () => number
  /** What the policies see of all this. */
  readonly policyDesk: { at(now: number): PolicyContext }
  /** Fine-grained time in ms for measuring a decision. */
  readonly precise: () => number
  /** Jobs whose slot is kept while their model loads. */
  readonly loading: Map<string, Job>
  /** Batch work that is bound to a queue, by request: only a share of the slots is for it. */
  readonly boundBatch: Map<string, BoundBatch>
  /** Slots that linger after a cancel, with when they are given up. */
  readonly lingering: Map<string, { readonly since: number; readonly until: number; readonly untilReport: boolean }>
  /** When the requests that were bound to a node were last sent back because a load is due there. */
  readonly loadDueAt: Map<string, number>
  /** Which node is being kept free for which model. */
  readonly turns: Turns
  lastRescoreAt: number
  /** The request that is being decided on, so that it can be held to account when that breaks. */
  asking: string | undefined
  /** A `room.look` to self is under way. */
  looking: boolean
}

export type DispatcherInput = Omit<
  DispatcherContext,
  'policyDesk' | 'loadDueAt' | 'turns' | 'lastRescoreAt' | 'looking' | 'asking'
>

export interface BoundBatch {
  readonly node: string
  /** As the fleet calls it. */
  readonly model: string
  readonly priority: Priority
  readonly arrivedAt: number
}

/** One event's worth of deciding. */
export interface Turn {
  readonly context: DispatcherContext
  readonly api: Api<DispatcherEvent>
}
