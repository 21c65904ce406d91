import type { AnyActorRef } from 'xstate'
import { modelKey } from '../../src/domain/job'
import type { Ledger } from '../../src/placement/ledger'
import type { Room } from '../../src/placement/room'
import type { BoundBatch } from './context'
import type { QueueContext } from '../queue.machine'
import type { Roster } from '../roster'
import type { RuntimeContext } from '../runtime.machine'

/**
 * A dispatcher that starts after another one broke: what runs is known to the queues and what loads to the runtimes, so
 * their slots and memory are taken again. Everybody who waits asks again by itself.
 */
export const rebuilt = (
  desk: { ledger: Ledger; room: Room },
  queues: ReadonlyMap<string, AnyActorRef>,
  roster: Roster,
  now: number,
) => {
  const boundBatch = new Map<string, BoundBatch>()
  for (const queue of queues.values()) {
    const { node, model, running, waiting } = (queue.getSnapshot() as { context: QueueContext }).context
    for (const { request, attempt, priority } of running.values()) {
      const batch = priority === 'batch' ? { isBatch: true as const } : {}
      desk.ledger.reserve({ request, attempt, node, model, state: 'running', since: now, ...batch })
    }
    for (const { request, priority, arrivedAt } of waiting) {
      desk.ledger.bind(node, model)
      if (priority === 'batch') boundBatch.set(request, { node, model, priority, arrivedAt })
    }
  }
  for (const { description, runtime } of roster.members()) {
    const { loading } = (runtime.getSnapshot() as { context: RuntimeContext }).context
    if (loading === undefined) continue
    const { model, startedAt, evicts } = loading
    const costGb = roster.measuredGb(modelKey(model))
    desk.ledger.beginLoad({
      node: description.name,
      model,
      startedAt,
      evicts,
      ...(costGb === undefined ? {} : { costGb }),
    })
  }
  return { ...desk, boundBatch }
}
