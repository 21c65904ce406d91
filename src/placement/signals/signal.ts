import type { Job } from '../../domain/job'
import type { Candidate } from '../../domain/placement'
import type { ScoreConfig } from '../../domain/score'
import type { PolicyContext } from '../policies/policy'

/** One of the things that `warmth` adds up. `name` is its key in records and headers. */
export interface Signal {
  readonly name: string
  /** Points; penalties are negative. */
  score(candidate: Candidate, job: Job, context: PolicyContext, score: ScoreConfig): number
}
