import type { AnyActorRef } from 'xstate'
import type { Ledger } from '../../src/placement/ledger'
import type { Room } from '../../src/placement/room'
import type { QueueContext } from '../queue.machine'

/**
 * A dispatcher that starts after another one broke: what runs is known to the queues, so their slots are taken again.
 * Everybody who waits asks again by itself.
 */
export const rebuilt = (
  desk: { ledger: Ledger; room: Room },
  queues: ReadonlyMap<string, AnyActorRef>,
  now: number,
) => {
  for (const queue of queues.values()) {
    const { node, model, running, waiting } = (queue.getSnapshot() as { context: QueueContext }).context
    for (const { request, attempt } of running.values())
      desk.ledger.reserve({ request, attempt, node, model, state: 'running', since: now })
    for (const _ of waiting) desk.ledger.bind(node, model)
  }
  return desk
}
