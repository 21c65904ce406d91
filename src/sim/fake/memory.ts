import type { FakeModel } from './options'
import type { MemoryLimits, Resident } from './work'

/** The window a model gets, in tokens: what was asked for or its default, at most its maximum. */
export const windowOf = (model: FakeModel, asked?: number): number =>
  Math.min(asked ?? model.defaultContextTokens ?? model.contextTokens, model.contextTokens)

/** Weights and the cache of all slots, in GB. */
export const memoryOf = (model: FakeModel, contextTokens: number, slots: number): number =>
  model.sizeGb + (contextTokens / 1000) * slots * (model.kvGbPerThousandTokens ?? 0)

/** When a model that is idle from `now` on leaves memory; a negative keep-alive means never. */
export const expiryOf = (keepAliveMs: number, now: number): number =>
  keepAliveMs < 0 ? Number.POSITIVE_INFINITY : now + keepAliveMs

export const isIdle = (resident: Resident): boolean =>
  resident.state === 'ready' && resident.running.size === 0 && resident.waiting.length === 0

/**
 * Who has to leave so that `needGb` fit: idle models, least recently used first, and busy ones after them if `killing`.
 * Undefined: there is no way now.
 */
export const victimsFor = (
  needGb: number,
  residents: readonly Resident[],
  limits: MemoryLimits,
  killing: boolean,
): Resident[] | undefined => {
  const byAge = [...residents].sort((a, b) => a.lastUsedAt - b.lastUsedAt)
  const busy = killing ? byAge.filter((each) => each.state === 'ready' && !isIdle(each)) : []
  const victims: Resident[] = []
  let usedGb = residents.reduce((sum, each) => sum + each.memoryGb, 0)
  let count = residents.length
  for (const next of [...byAge.filter(isIdle), ...busy]) {
    if (usedGb + needGb <= limits.memoryGb && count < limits.maxResident) break
    victims.push(next)
    usedGb -= next.memoryGb
    count -= 1
  }
  return usedGb + needGb <= limits.memoryGb && count < limits.maxResident ? victims : undefined
}
