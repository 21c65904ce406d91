import type { Job } from '../domain/job'
import type { Candidate, Placement, Ranked, SlotsBasis } from '../domain/placement'
import { isServable } from './window'

/** Numbers that nobody vouches for: learned, or assumed where nothing is known. */
const DOUBTFUL: ReadonlySet<SlotsBasis> = new Set(['learned', 'default'])

/**
 * Its slots are taken by our own requests, nothing else goes on there, and nobody vouches for their number: one more shows
 * whether the engine runs more than is known.
 */
export const isDoubtful = (candidate: Candidate): boolean => {
  const { slots, slotsBasis, inFlight, foreign, resident, health, breaker, loading, others, nodeInFlight, node } =
    candidate
  return (
    DOUBTFUL.has(slotsBasis) &&
    inFlight === slots &&
    foreign === 0 &&
    nodeInFlight < (node.maxConcurrency ?? Number.POSITIVE_INFINITY) &&
    resident?.state === 'ready' &&
    health === 'online' &&
    breaker === 'closed' &&
    candidate.isRefusing !== true &&
    candidate.isJustLoaded !== true &&
    loading === undefined &&
    !others.some(({ busy }) => busy)
  )
}

/**
 * A request that would only wait starts as one more than is known to run at once on the best node where that is to be
 * tried; undefined where there is none. Only streamed answers show whether they ran, and nothing critical is risked.
 */
export const trialFor = (
  { decision, verdicts, policy }: Placement,
  candidates: readonly Candidate[],
  job: Job,
  now: number,
  mayTry: (candidate: Candidate) => boolean,
): Placement | undefined => {
  if (decision.kind !== 'wait' || !job.stream || job.priority === 'critical') return undefined
  for (const verdict of verdicts) {
    if (verdict.verdict !== 'ranked') continue
    const candidate = candidates.find(({ node, model }) => node.name === verdict.node && model === verdict.model)
    if (candidate === undefined || !isDoubtful(candidate) || candidate.bound > 0) continue
    if (candidate.turnOf !== undefined) continue
    if (candidate.shareLeft !== undefined && candidate.shareLeft <= 0) continue
    if (!isServable(candidate, job, now) || !mayTry(candidate)) continue
    const { node, model } = verdict
    const tried: Ranked = { ...verdict, terms: { ...verdict.terms, trial: 'one_more' } }
    return {
      decision: { kind: 'start', node, model, reason: 'resident' },
      verdicts: verdicts.map((one) => (one === verdict ? tried : one)),
      policy,
    }
  }
  return undefined
}
