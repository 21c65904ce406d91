import { RouterError } from '../../src/domain/errors'
import type { Failure } from '../../src/domain/facts'
import { isSameFault, isUnsent } from '../../src/placement/breaker'
import { pairOf } from '../../src/placement/filters/failed-before'
import type { RequestEvent } from '../protocol'
import type { RequestContext } from './context'

type Of<T extends RequestEvent['type']> = Extract<RequestEvent, { type: T }>

export const mayTryAgain = ({ attempt, unsent, ports }: RequestContext): boolean =>
  attempt - unsent <= ports.config.policy.retries

/** No node has seen anything of the attempt that failed. */
export const wasUnsent = (_context: RequestContext, event: RequestEvent): boolean => {
  const { failure } = event as Of<'reply.failed'> | Of<'placement.lost'>
  return failure !== undefined && isUnsent(failure)
}

/** The node, or only the model there, is kept from the next attempt: until it is back if it was not reached, else for good. */
export const exclude = (context: RequestContext, node: string, failure: Failure | undefined, model?: string): void => {
  context.attempt += 1
  if (failure === undefined || !isUnsent(failure)) {
    context.excluded = [...context.excluded, model === undefined ? node : pairOf(node, model)]
    return
  }
  context.unsent += 1
  const { now, config } = context.ports
  const others = context.unreached.filter((one) => one.node !== node)
  // A node that refuses requests and answers polls all the same is not asked in a loop.
  const waitMs = others.length < context.unreached.length ? config.policy.rescoreEveryMs : 0
  context.unreached = [...others, { node, since: now() + waitMs }]
}

/** Another node failed on it with the very same words. */
export const isRequestsFault = (
  { job, lastFailure, lastFailedNode, place }: RequestContext,
  event: RequestEvent,
): boolean =>
  // An embedding is computed, not sampled: what fails alike twice fails everywhere. Any other answer may be luck.
  job.needs.includes('embedding') &&
  lastFailure !== undefined &&
  lastFailedNode !== undefined &&
  lastFailedNode !== place?.node &&
  isSameFault(lastFailure, (event as Of<'reply.failed'>).failure)

const TIMEOUTS: ReadonlySet<Failure['class']> = new Set(['connect_timeout', 'first_byte_timeout', 'idle_timeout'])

/** The client's error for a request that ends by a failure, on that node if one is to be named. */
export const errorOf = (
  context: RequestContext,
  failure: Failure | undefined,
  node: string | undefined,
): RouterError => {
  const timedOut = failure !== undefined && TIMEOUTS.has(failure.class)
  const where = node === undefined ? '' : ` on ${node}`
  const nodes = node === undefined || failure === undefined ? [] : [{ node, reason: failure.class }]
  if (failure?.class === 'overloaded') {
    return new RouterError('no_capacity', `'${context.job.asked}' is overloaded${where}: ${failure.message}`, {
      nodes,
      retryAfterSeconds: 2,
    })
  }
  if (failure?.class === 'model_missing') {
    return new RouterError('model_not_found', `The model '${context.job.asked}' does not exist${where}.`, {
      nodes,
      param: 'model',
    })
  }
  return new RouterError(
    timedOut ? 'upstream_timeout' : 'upstream_failed',
    `'${context.job.asked}' failed${where}: ${failure?.message ?? 'unknown failure'}`,
    { nodes },
  )
}

/** What a request that waited in vain says of the failure that made it wait, if one did. */
export const lastFailureOf = ({ lastFailure, lastFailedNode }: RequestContext) =>
  lastFailure === undefined || lastFailedNode === undefined
    ? { words: '', nodes: {} }
    : {
        words: ` It had failed on ${lastFailedNode}: ${lastFailure.message}`,
        nodes: { nodes: [{ node: lastFailedNode, reason: lastFailure.class }] },
      }
