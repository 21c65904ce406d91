import type { PriorityConfig } from '../domain/config'
import type { Priority } from '../domain/job'

/** What decides on a place among others. */
export interface Standing {
  readonly priority: Priority
  /** ms since the epoch. */
  readonly arrivedAt: number
}

/** The class that counts now: batch work that has waited for `batch.max_wait` is normal from then on. */
export const classAt = (
  { priority, arrivedAt }: Standing,
  now: number,
  { batchMaxWaitMs }: Pick<PriorityConfig, 'batchMaxWaitMs'>,
): Priority => (priority === 'batch' && now - arrivedAt >= batchMaxWaitMs ? 'normal' : priority)

/** Below 0 when `a` goes before `b`: by class, then by arrival. */
export const comparePlaces = (a: Standing, b: Standing, now: number, rules: PriorityConfig): number =>
  rules.order.indexOf(classAt(a, now, rules)) - rules.order.indexOf(classAt(b, now, rules)) || a.arrivedAt - b.arrivedAt

/** How long a queue may be for a request of that class. */
export const queueLimitFor = (limit: number, priority: Priority, rules: PriorityConfig): number =>
  priority === 'critical' ? Math.floor(limit * rules.criticalQueueAllowance) : limit

export interface ShareFacts {
  /** Slots that the share is of. */
  readonly slots: number
  /** Batch requests on them. */
  readonly batch: number
  /** Requests on the node, whoever's. */
  readonly nodeInFlight: number
}

/**
 * Slots that batch work may still take: its share of them, rounded down; on a node that has nothing else to do at least
 * one, so that the smallest is not closed to it.
 */
export const batchRoom = ({ slots, batch, nodeInFlight }: ShareFacts, maxShare: number): number =>
  Math.max(Math.floor(slots * maxShare) - batch, nodeInFlight === 0 ? 1 : 0, 0)
