import type { Job } from '../domain/job'
import type { NodeDescription } from '../domain/node'
import type { Candidate } from '../domain/placement'

type Window = Pick<Job, 'contextTokens'>

/** Listed as resident beyond its own expiry: an engine that hangs while it unloads shows this. */
export const isExpired = ({ resident }: Candidate, now: number): boolean =>
  resident?.expiresAt !== undefined && resident.expiresAt < now

/** The resident copy can serve the job as it is: ready, not past its expiry, and its window is wide enough. */
export const isServable = (candidate: Candidate, job: Window, now: number): boolean => {
  const { resident } = candidate
  if (resident === undefined || resident.state !== 'ready') return false
  if (isExpired(candidate, now)) return false
  return isWideEnough(candidate, job)
}

/** No window was asked for, none is known, or it holds what was asked, of which no model has more than it was trained for. */
export const isWideEnough = ({ resident, stored }: Candidate, { contextTokens }: Window): boolean =>
  contextTokens === undefined ||
  resident?.contextTokens === undefined ||
  resident.contextTokens >= Math.min(contextTokens, stored.maxContextTokens ?? contextTokens)

/** The engine has to (re)load the model before it can serve the job. */
export const needsLoad = (candidate: Candidate, job: Window, now: number): boolean =>
  candidate.canLoad && !isServable(candidate, job, now)

/** The engine would load the model for the request itself: it has no other way to, and the model is not in memory. */
export const loadsByRequest = (candidate: Candidate, now: number): boolean =>
  candidate.loadsOnRequest === true &&
  !candidate.canLoad &&
  (candidate.resident === undefined || isExpired(candidate, now))

/**
 * A request may make such an engine load: it makes room as it likes, also where it is answering, so nothing else may run
 * there.
 */
export const isIdleForRequest = ({ loading, others }: Candidate): boolean =>
  loading === undefined && !others.some(({ busy }) => busy)

/** The window to load the model with: the wider of what the client asks and what the node is configured for. */
export const windowToLoad = (node: NodeDescription, { contextTokens }: Job): number | undefined => {
  const configured = node.contextTokens
  if (contextTokens === undefined || configured === undefined) return contextTokens ?? configured
  return Math.max(contextTokens, configured)
}

/** The window that a request meets: that of the resident copy when it is wide enough, else that of the load. */
export const windowFor = (candidate: Candidate, job: Job): number | undefined =>
  isWideEnough(candidate, job) && candidate.resident?.contextTokens !== undefined
    ? candidate.resident.contextTokens
    : windowToLoad(candidate.node, job)
