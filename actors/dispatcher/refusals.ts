import { RouterError, type NodeReason } from '../../src/domain/errors'
import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate, Eliminated, Placement } from '../../src/domain/placement'
import { retryAfterSeconds } from '../../src/learning/retry-after'
import { isTemporary } from '../../src/placement/place'
import { nearestNames } from '../../src/catalog/nearest'
import type { DispatcherContext } from './context'

const eliminatedIn = ({ verdicts }: Placement): readonly Eliminated[] =>
  verdicts.filter((verdict): verdict is Eliminated => verdict.verdict === 'eliminated')

/** What each node compared, for the error's `fleet` member. */
export const reasonsOf = (placement: Placement): readonly NodeReason[] =>
  eliminatedIn(placement)
    .slice(0, 8)
    .map(({ node, reason, need, have, unit }) => ({
      node,
      reason,
      ...(need === undefined ? {} : { need }),
      ...(have === undefined ? {} : { have }),
      ...(unit === undefined ? {} : { unit }),
    }))

/** Without a measurement a place is assumed to be free after this, in ms. */
const DEFAULT_SERVICE_MS = 10_000

/** Whole seconds until one of the nodes has a free slot for the job, by what runs there and how long it takes there. */
export const retryAfterFor = (context: DispatcherContext, candidates: readonly Candidate[]): number => {
  const now = context.now()
  const waits = candidates.map(({ node, model, slots }) =>
    retryAfterSeconds({
      running: context.ledger.on(node.name, model).map(({ since }) => ({ elapsedMs: now - since })),
      meanMs: context.samples.service(node.name, modelKey(model))?.meanMs ?? DEFAULT_SERVICE_MS,
      slots,
      ahead: 0,
    }),
  )
  return waits.length === 0 ? Math.ceil(context.config.policy.rescoreEveryMs / 1000) : Math.min(...waits)
}

/** Nothing can serve it: an error at once when waiting cannot cure that, undefined when it is to be held. */
export const refusalFor = (
  context: DispatcherContext,
  job: Job,
  placement: Placement,
  excluded: readonly string[],
): RouterError | undefined => {
  const eliminated = eliminatedIn(placement)
  const nodes = reasonsOf(placement)
  const known = job.models.some((model) => context.roster.wasListed(modelKey(model)))
  if (eliminated.length === 0) {
    if (known || !context.roster.allInventoried() || context.roster.size === 0) return undefined
    const near = nearestNames(job.asked, context.roster.keys())
    return new RouterError('model_not_found', `The model '${job.asked}' does not exist on any node.`, {
      hint:
        near.length === 0
          ? 'GET /v1/models lists what there is.'
          : `Did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`,
      param: 'model',
    })
  }
  if (eliminated.some(({ reason }) => isTemporary(reason))) return undefined
  if (
    eliminated.every(({ reason }) => reason === 'failed_before' || reason === 'pinned_elsewhere') &&
    excluded.length > 0
  ) {
    return new RouterError('upstream_failed', `Every node that could serve '${job.asked}' failed on this request.`, {
      nodes,
    })
  }
  const reasons = new Set(eliminated.map(({ reason }) => reason))
  if (reasons.has('capability_missing')) {
    const missing = job.needs.filter((need) => need !== 'chat').join(', ') || job.needs.join(', ')
    return new RouterError('invalid_request', `'${job.asked}' does not support ${missing}.`, { nodes, param: 'model' })
  }
  const window = eliminated.find(({ reason }) => reason === 'context_too_small')
  if (window !== undefined) {
    return new RouterError(
      'context_too_large',
      `No node has '${job.asked}' with a context window of ${window.need} tokens; the widest has ${window.have}.`,
      { nodes },
    )
  }
  return new RouterError('no_capacity', `No node may serve '${job.asked}' for this request.`, {
    nodes,
    retryAfterSeconds: retryAfterFor(context, []),
    hint: job.pin === undefined ? 'fleet status shows what each node may do.' : `X-Fleet-Node asks for '${job.pin}'.`,
  })
}

/** The room is full for everybody or for this model. */
export const roomRefusal = (
  context: DispatcherContext,
  job: Job,
  candidates: readonly Candidate[],
): RouterError | undefined => {
  const { waitingTotal, waitingPerModel } = context.config.limits
  const ofModel = context.room.sizeOf(job.models[0] ?? job.asked)
  if (context.room.size < waitingTotal && ofModel < waitingPerModel) return undefined
  const full =
    context.room.size >= waitingTotal
      ? `${waitingTotal} requests are waiting`
      : `${waitingPerModel} requests for '${job.asked}' are waiting`
  return new RouterError('queue_full', `${full}; no more are taken.`, {
    retryAfterSeconds: retryAfterFor(context, candidates),
  })
}
