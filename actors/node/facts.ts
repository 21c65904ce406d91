import type { Breaker, Health } from '../../src/domain/node'
import { messageOf, type NodeContext } from './context'

export const recordHealth = ({ journal, now, node, healthReason }: NodeContext, health: Health): void =>
  journal.record({
    type: 'node.health',
    at: now(),
    node: node.name,
    health,
    ...(healthReason === undefined ? {} : { reason: healthReason }),
  })

/** Why, unless it closes; when the next try is, if it opens. */
export const recordBreaker = (context: NodeContext, breaker: Breaker): void => {
  const { journal, now, node, breakerReason, breakerRetryAt } = context
  journal.record({
    type: 'node.breaker',
    at: now(),
    node: node.name,
    breaker,
    ...(breaker === 'closed' || breakerReason === undefined ? {} : { reason: breakerReason }),
    ...(breaker === 'open' && breakerRetryAt !== undefined ? { retryAt: breakerRetryAt } : {}),
  })
}

export const recordRuntimeFailure = ({ journal, now }: NodeContext, event: unknown): void => {
  const { actorId, error } = event as { readonly actorId: string; readonly error: unknown }
  journal.record({
    type: 'actor.failed',
    at: now(),
    actor: actorId,
    machine: 'runtime',
    message: messageOf(error),
    restarted: true,
  })
}
