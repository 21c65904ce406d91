import type { Job } from '../domain/job'
import type { Candidate } from '../domain/placement'

/** The resident copy can serve the job as it is: ready, not past its expiry, and its window is wide enough. */
export const isServable = (candidate: Candidate, job: Job, now: number): boolean => {
  const { resident } = candidate
  if (resident === undefined || resident.state !== 'ready') return false
  if (resident.expiresAt !== undefined && resident.expiresAt < now) return false
  return isWideEnough(candidate, job)
}

/** No window was asked for, none is known, or it holds what was asked. */
export const isWideEnough = ({ resident }: Candidate, { contextTokens }: Job): boolean =>
  contextTokens === undefined || resident?.contextTokens === undefined || resident.contextTokens >= contextTokens

/** The engine has to (re)load the model before it can serve the job. */
export const needsLoad = (candidate: Candidate, job: Job, now: number): boolean => candidate.canLoad && !isServable(candidate, job, now)
