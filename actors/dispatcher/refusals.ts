import { RouterError, type NodeReason } from '../../src/domain/errors'
import { isGlob } from '../../src/domain/glob'
import { type Job, modelKey } from '../../src/domain/job'
import { isModelAllowed } from '../../src/domain/model-globs'
import type { Candidate, Eliminated, Placement } from '../../src/domain/placement'
import type { Reservation } from '../../src/placement/ledger'
import { type Running, retryAfterSeconds } from '../../src/learning/retry-after'
import { queueLimitFor } from '../../src/placement/priority'
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

const serviceMs = ({ samples }: DispatcherContext, node: string, model: string): number =>
  samples.service(node, modelKey(model))?.meanMs ?? DEFAULT_SERVICE_MS

/** A request whose model is still being loaded has its whole service before it. */
export const runningOf = (context: DispatcherContext, { node, model, state, since }: Reservation): Running => {
  const elapsedMs = context.now() - since
  const meanMs = serviceMs(context, node, model)
  if (state !== 'loading') return { elapsedMs, meanMs }
  const loadMs = context.samples.loadMs(node, modelKey(model))?.meanMs ?? 0
  return { elapsedMs: Math.min(0, elapsedMs - loadMs), meanMs }
}

/** Who has to end before the candidate takes another: those on its model's slots, or whoever else keeps the node busy. */
export const inTheWay = (
  { ledger }: DispatcherContext,
  { node, model, slots, free }: Candidate,
): readonly Reservation[] => {
  const ofModel = ledger.on(node.name, model)
  return free > 0 || ofModel.length >= slots ? ofModel : ledger.on(node.name)
}

/** Whole seconds until one of the nodes has a free slot for the job, by what runs there and how long it takes there. */
export const retryAfterFor = (context: DispatcherContext, candidates: readonly Candidate[]): number => {
  const waits = candidates.map((candidate) => {
    const running = inTheWay(context, candidate).map((one) => runningOf(context, one))
    const slots = candidate.free > 0 ? candidate.slots : Math.max(1, Math.min(candidate.slots, running.length))
    return retryAfterSeconds({
      running,
      meanMs: serviceMs(context, candidate.node.name, candidate.model),
      slots,
      ahead: 0,
    })
  })
  return waits.length === 0 ? Math.ceil(context.config.policy.rescoreEveryMs / 1000) : Math.min(...waits)
}

const tokensOf = ({
  need,
  have,
}: Eliminated): { readonly tokens?: { readonly need: number; readonly have: number } } =>
  need === undefined || have === undefined ? {} : { tokens: { need, have } }

const failedEverywhere = (job: Job, nodes: readonly NodeReason[]): RouterError =>
  new RouterError('upstream_failed', `Every node that could serve '${job.asked}' failed on this request.`, { nodes })

/** What the caller's key may use: a name that it may not even see is no suggestion. */
const globsOf = ({ config }: DispatcherContext, { key }: Job): readonly string[] | undefined =>
  key === undefined ? undefined : config.auth.keys.find(({ name }) => name === key)?.models

/** Nothing can serve it: an error at once when waiting cannot cure that, undefined when it is to be held. */
export const refusalFor = (
  context: DispatcherContext,
  job: Job,
  placement: Placement,
  candidates: readonly Candidate[],
  excluded: readonly string[],
): RouterError | undefined => {
  const eliminated = eliminatedIn(placement)
  const nodes = reasonsOf(placement)
  const known = job.models.some((model) => context.roster.wasListed(modelKey(model)))
  if (eliminated.length === 0) {
    if (known && excluded.length > 0) return failedEverywhere(job, nodes)
    if (known || !context.roster.allInventoried() || context.roster.size === 0) return undefined
    if (job.anyModel) {
      const what = job.needs.join(', ')
      return new RouterError('model_not_found', `No model is named, and no node tells that it does ${what}.`, {
        hint: 'Name one in "model"; GET /v1/models lists what there is.',
        param: 'model',
      })
    }
    const aliases = (context.config.aliases ?? []).map(({ name }) => name).filter((name) => !isGlob(name))
    const shown = [...context.roster.keys(), ...aliases].filter((name) => isModelAllowed(globsOf(context, job), name))
    const near = nearestNames(job.asked, new Set(shown))
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
    return failedEverywhere(job, nodes)
  }
  const reasons = new Set(eliminated.map(({ reason }) => reason))
  if (reasons.has('capability_missing') || reasons.has('lane_missing')) {
    const missing = job.needs.filter((need) => need !== 'chat').join(', ') || job.needs.join(', ') || 'text'
    return new RouterError('not_supported', `'${job.asked}' does not support ${missing}.`, {
      nodes,
      param: 'model',
      hint: 'GET /v1/models lists what the models can do, where the nodes tell.',
    })
  }
  if (reasons.has('queue_full')) {
    return new RouterError('queue_full', `Every queue for '${job.asked}' is full; no more are taken.`, {
      nodes,
      retryAfterSeconds: retryAfterFor(context, candidates),
    })
  }
  const window = eliminated.find(({ reason }) => reason === 'context_too_small')
  if (window !== undefined) {
    return new RouterError(
      'context_too_large',
      `No node has '${job.asked}' with a context window of ${window.need} tokens; the widest has ${window.have}.`,
      { nodes, ...tokensOf(window) },
    )
  }
  return new RouterError('no_capacity', `No node may serve '${job.asked}' for this request.`, {
    nodes,
    retryAfterSeconds: retryAfterFor(context, []),
    hint:
      job.pin === undefined
        ? 'fleet status shows how the nodes stand.'
        : `X-Fleet-Node asks for '${job.pin}', and nothing of that name or tag may serve it.`,
  })
}

/** The room is full for everybody or for this model. */
export const roomRefusal = (
  context: DispatcherContext,
  job: Job,
  candidates: readonly Candidate[],
  { verdicts }: Placement,
): RouterError | undefined => {
  const { waitingTotal } = context.config.limits
  const waitingPerModel = queueLimitFor(context.config.limits.waitingPerModel, job.priority, context.config.priorities)
  const ofModel = context.room.sizeOf(job.models[0] ?? job.asked)
  if (context.room.size < waitingTotal && ofModel < waitingPerModel) return undefined
  const full =
    context.room.size >= waitingTotal
      ? `${waitingTotal} requests are waiting`
      : `${waitingPerModel} requests for '${job.asked}' are waiting`
  const able = new Set(verdicts.flatMap(({ verdict, node }) => (verdict === 'ranked' ? [node] : [])))
  return new RouterError('queue_full', `${full}; no more are taken.`, {
    retryAfterSeconds: retryAfterFor(
      context,
      candidates.filter(({ node }) => able.has(node.name)),
    ),
  })
}
