import type { Job } from '../domain/job'
import type { Candidate, Eliminated, Placement } from '../domain/placement'
import { filters } from './filters'
import type { Filter, FilterContext } from './filters/filter'
import type { Policy, PolicyContext } from './policies/policy'

const TEMPORARY = new Set(filters.filter((filter) => filter.temporary).map((filter) => filter.name))

/** A reason that waiting can cure. */
export const isTemporary = (reason: string): boolean => TEMPORARY.has(reason)

/** Stage 1: the first reason that eliminates the candidate, with the numbers that it compared. */
export const eliminate = (
  candidate: Candidate,
  job: Job,
  context: FilterContext,
  among: readonly Filter[] = filters,
): Eliminated | undefined => {
  for (const filter of among) {
    const numbers = filter.reject(candidate, job, context)
    if (numbers !== undefined) {
      return {
        verdict: 'eliminated',
        node: candidate.node.name,
        model: candidate.model,
        reason: filter.name,
        ...numbers,
      }
    }
  }
  return undefined
}

const OF_CANDIDATE = filters.filter((filter) => filter.ofCandidate === true)

/** Whether the filters that look at the candidate alone pass it; candidates are kept from one decision to the next. */
const soundness = new WeakMap<Candidate, boolean>()

const isSound = (candidate: Candidate, job: Job, context: FilterContext): boolean => {
  const known = soundness.get(candidate)
  if (known !== undefined) return known
  const isSoundNow = OF_CANDIDATE.every((filter) => filter.reject(candidate, job, context) === undefined)
  soundness.set(candidate, isSoundNow)
  return isSoundNow
}

/**
 * Stages 1 and 2 for a job over all candidates of its chain: eliminate, rank, answer. Pure: the caller reserves in the
 * same turn.
 */
export const place = (
  candidates: readonly Candidate[],
  job: Job,
  policy: Policy,
  context: PolicyContext,
  excluded: ReadonlySet<string>,
  queueLimit?: number,
): Placement => {
  const survivors: Candidate[] = []
  const eliminated: Eliminated[] = []
  const filterContext = {
    now: context.now,
    excluded,
    ...(policy.binding === 'early' && queueLimit !== undefined ? { queueLimit } : {}),
  }
  const concerned = filters.filter((filter) => filter.concerns?.(job, filterContext) ?? true)
  const ofJob = concerned.filter((filter) => filter.ofCandidate !== true)
  for (const candidate of candidates) {
    const among = isSound(candidate, job, filterContext) ? ofJob : concerned
    const reason = eliminate(candidate, job, filterContext, among)
    if (reason === undefined) survivors.push(candidate)
    else eliminated.push(reason)
  }
  if (survivors.length === 0)
    return { decision: { kind: 'hold', reason: 'held' }, verdicts: eliminated, policy: policy.name }
  const { decision, ranked } = policy.choose(survivors, job, context)
  return { decision, verdicts: [...ranked, ...eliminated], policy: policy.name }
}
