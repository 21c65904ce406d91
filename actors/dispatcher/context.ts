import type { Config } from '../../src/domain/config'
import type { Job } from '../../src/domain/job'
import type { Ledger } from '../../src/placement/ledger'
import type { Policy } from '../../src/placement/policies/policy'
import type { Room } from '../../src/placement/room'
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
  config: Pick<Config, 'limits' | 'policy' | 'score' | 'cost'>
  readonly now: () => number
  /** 0 <= x < 1 */
  readonly random: () => number
  /** Fine-grained time in ms for measuring a decision. */
  readonly precise: () => number
  /** Jobs whose slot is kept while their model loads. */
  readonly loading: Map<string, Job>
  /** Slots that linger after a cancel, with when they are given up. */
  readonly lingering: Map<string, { readonly since: number; readonly until: number; readonly untilReport: boolean }>
  lastRescoreAt: number
  /** The request that is being decided on, so that it can be held to account when that breaks. */
  asking: string | undefined
  /** A `room.look` to self is under way. */
  looking: boolean
}

export type DispatcherInput = Omit<DispatcherContext, 'lastRescoreAt' | 'looking' | 'asking'>

/** One event's worth of deciding. */
export interface Turn {
  readonly context: DispatcherContext
  readonly api: Api<DispatcherEvent>
}
