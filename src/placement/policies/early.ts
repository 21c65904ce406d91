import type { Job } from '../../domain/job'
import type { Candidate, Decision, Ranked } from '../../domain/placement'
import { isServable } from '../window'
import type { Choice } from './policy'

/** A survivor with what it is ranked by; `value` is compared as the policy says, then by who was chosen longest ago. */
export interface Rated {
  readonly candidate: Candidate
  readonly value: number
  readonly terms: Ranked['terms']
}

/**
 * The model of the chain to use: the first that some survivor has in memory, else the first that some survivor can load
 * (the seed's fallback chain).
 */
export const ofChosenModel = (survivors: readonly Candidate[], job: Job, now: number): readonly Candidate[] => {
  const choices = [...new Set(survivors.map(({ choice }) => choice))].sort((a, b) => a - b)
  const warm = choices.find((choice) => survivors.some((one) => one.choice === choice && isServable(one, job, now)))
  const chosen = warm ?? choices[0]
  return survivors.filter(({ choice }) => choice === chosen)
}

const reasonFor = (candidate: Candidate, job: Job, now: number, rivals: number): string => {
  if (rivals === 1) return 'only_candidate'
  if (candidate.choice > 0) return 'fallback'
  return isServable(candidate, job, now) ? 'resident' : 'cold_load'
}

/** Binds to the best: `order` compares two values, below 0 when the first is better. */
export const bindBest = (
  rated: readonly Rated[],
  job: Job,
  now: number,
  order: (a: number, b: number) => number,
): Choice => {
  const sorted = [...rated].sort((a, b) => order(a.value, b.value) || a.candidate.lastChosen - b.candidate.lastChosen)
  const ranked = sorted.map(
    ({ candidate, value, terms }): Ranked => ({
      verdict: 'ranked',
      node: candidate.node.name,
      model: candidate.model,
      rank: value,
      terms,
    }),
  )
  const [best, second] = sorted
  if (best === undefined) return { decision: { kind: 'hold', reason: 'held' }, ranked }
  if (second !== undefined && second.value === best.value && ranked[0] !== undefined) {
    ranked[0] = { ...ranked[0], tie: 'least_recently_chosen' }
  }
  const { candidate } = best
  const decision: Decision = {
    kind: 'bind',
    node: candidate.node.name,
    model: candidate.model,
    ...(candidate.choice > 0 ? { choice: candidate.choice } : {}),
    reason: reasonFor(candidate, job, now, sorted.length),
  }
  return { decision, ranked }
}
