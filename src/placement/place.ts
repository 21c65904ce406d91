import type { Job } from '../domain/job'
import type { Candidate, Eliminated, Placement } from '../domain/placement'
import type { Writable } from '../domain/writable'
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
  let isSoundNow = true
  for (const filter of OF_CANDIDATE) isSoundNow &&= filter.reject(candidate, job, context) === undefined
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
  const filterContext: Writable<FilterContext> = { now: context.now, excluded }
  if (policy.binding === 'early' && queueLimit !== undefined) filterContext.queueLimit = queueLimit
  const concerned: Filter[] = []
  const ofJob: Filter[] = []
  for (const filter of filters) {
    if (filter.concerns !== undefined && !filter.concerns(job, filterContext)) continue
    concerned.push(filter)
    if (filter.ofCandidate !== true) ofJob.push(filter)
  }
  for (const candidate of candidates) {
    const among = isSound(candidate, job, filterContext) ? ofJob : concerned
    const reason = eliminate(candidate, job, filterContext, among)
    if (reason === undefined) survivors.push(candidate)
    else eliminated.push(reason)
  }
  if (survivors.length === 0)
    return { decision: { kind: 'hold', reason: 'held' }, verdicts: eliminated, policy: policy.name }
  const { decision, ranked } = policy.choose(survivors, job, context)
  const verdicts = eliminated.length === 0 ? ranked : [...ranked, ...eliminated]
  return { decision, verdicts, policy: policy.name }
}
