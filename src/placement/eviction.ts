import type { Job } from '../domain/job'
import type { Candidate } from '../domain/placement'
import { needsLoad } from './window'

/**
 * Which idle models a load has to push out, least recently used first; empty when it fits beside them, undefined when it
 * cannot be done without touching a model that is answering, or when nobody knows.
 *
 * Where memory or cap is unknown the engine decides by itself what to evict, so nothing may be answering there, unless
 * it held as many models at once before.
 */
export const evictionsFor = (candidate: Candidate): readonly string[] | undefined => {
  const { availableGb, costGb, maxResident, mostResident = 1, others } = candidate
  const idle = others.filter((other) => !other.busy)
  const someBusy = idle.length < others.length
  const evicts: string[] = []

  const cap = maxResident ?? (someBusy ? mostResident : undefined)
  const overCap = cap === undefined ? 0 : others.length + 1 - cap
  if (overCap > idle.length) return undefined
  for (const other of idle.slice(0, Math.max(0, overCap))) evicts.push(other.name)

  if (availableGb === undefined || costGb === undefined) {
    if (maxResident !== undefined && availableGb === undefined) return evicts
    return someBusy ? undefined : evicts
  }
  let room = availableGb + (candidate.resident?.memoryGb ?? 0)
  for (const other of idle.slice(0, evicts.length)) room += other.memoryGb ?? 0
  for (const other of idle.slice(evicts.length)) {
    if (room >= costGb) break
    evicts.push(other.name)
    room += other.memoryGb ?? 0
  }
  return room >= costGb ? evicts : undefined
}

/**
 * Loading it would push out one of those that the request must leave in memory. Where nobody can tell what the engine will
 * push out, it counts as if it did.
 */
export const pushesOutKept = (candidate: Candidate): boolean => {
  const { keeps, availableGb, costGb } = candidate
  if (keeps === undefined) return false
  if (availableGb === undefined || costGb === undefined) return true
  return evictionsFor(candidate)?.some((name) => keeps.includes(name)) === true
}

const holds = (others: Candidate['others'], model: string): boolean => others.some(({ name }) => name === model)

/**
 * Another model is being loaded, or was since the last report, and nobody can tell whether the engine pushed this one out
 * for it: a request could make it load once more, and push out one that is answering.
 */
export const isAtRisk = (candidate: Candidate): boolean => {
  const { loading, model, availableGb, maxResident, mostResident = 1, others, resident } = candidate
  const isUnseen = (loading !== undefined && loading !== model) || candidate.isUnverified === true
  if (!isUnseen || maxResident !== undefined) return false
  const isListed = loading === undefined || loading === model || holds(others, loading)
  const count = others.length + (resident === undefined ? 0 : 1) + (isListed ? 0 : 1)
  return availableGb === undefined || count > mostResident
}

/**
 * What loading the model there now would push out; undefined when that is not due (it is in memory, the engine loads by
 * itself) or not possible now (another load, a copy or a neighbour that answers).
 */
export const loadableNow = (
  candidate: Candidate,
  job: Pick<Job, 'contextTokens'>,
  now: number,
): readonly string[] | undefined => {
  const { loading, model, resident, inFlight } = candidate
  if (!needsLoad(candidate, job, now)) return undefined
  if (loading !== undefined) return loading === model ? [] : undefined
  return resident !== undefined && inFlight > 0 ? undefined : evictionsFor(candidate)
}
