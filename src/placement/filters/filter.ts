import type { Job } from '../../domain/job'
import type { Candidate } from '../../domain/placement'

export interface FilterContext {
  readonly now: number
  readonly excluded: ReadonlySet<string>
  /** Requests that may be bound to one queue; absent for a policy that binds late. */
  readonly queueLimit?: number
}

/** Numbers that a "no" compared, where it compared numbers. */
export interface Numbers {
  readonly need?: number
  readonly have?: number
  readonly unit?: string
}

/**
 * One reason to eliminate a node. `name` is the reason in records, errors and metrics. `temporary` says that waiting can
 * cure it: then the request is held; when only others remain, it is refused at once.
 */
export interface Filter {
  readonly name: string
  readonly temporary: boolean
  /** It looks at the candidate alone, neither at the job nor at the clock: asked once for as long as that is the same. */
  readonly ofCandidate?: true
  /** False when it passes every candidate for this job, whatever the candidate: then it is not asked for each. */
  concerns?(job: Job, context: FilterContext): boolean
  /** Undefined passes. */
  reject(candidate: Candidate, job: Job, context: FilterContext): Numbers | undefined
}
