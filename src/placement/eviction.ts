import type { Candidate } from '../domain/placement'

/**
 * Which idle models a load has to push out, least recently used first; empty when it fits beside them, undefined when it
 * cannot be done without touching a model that is answering, or when nobody knows.
 *
 * Where memory and cap are unknown the engine decides by itself what to evict, so nothing may be answering there.
 */
export const evictionsFor = (candidate: Candidate): readonly string[] | undefined => {
  const { availableGb, costGb, maxResident, others } = candidate
  const idle = others.filter((other) => !other.busy)
  const someBusy = idle.length < others.length
  const evicts: string[] = []

  const overCap = maxResident === undefined ? 0 : others.length + 1 - maxResident
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
