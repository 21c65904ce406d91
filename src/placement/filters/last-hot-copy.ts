import { evictionsFor } from '../eviction'
import { needsLoad } from '../window'
import type { Filter } from './filter'

/**
 * Loading it would push out the only copy of a model that was just in use. Where nobody can tell what the engine will push
 * out, it counts as if it did.
 */
export const lastHotCopy: Filter = {
  name: 'last_hot_copy',
  temporary: true,
  reject: (candidate, job, { now }) => {
    const { keeps, availableGb, costGb } = candidate
    if (keeps === undefined || !needsLoad(candidate, job, now)) return undefined
    const isUnknown = availableGb === undefined || costGb === undefined
    const evicts = evictionsFor(candidate)
    return isUnknown || evicts?.some((name) => keeps.includes(name)) ? {} : undefined
  },
}
