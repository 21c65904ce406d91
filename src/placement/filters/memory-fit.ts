import { needsLoad } from '../window'
import type { Filter } from './filter'

/**
 * The model would have to be loaded and cannot fit, even with every idle model pushed out. Unknown memory eliminates
 * nothing.
 */
export const memoryFit: Filter = {
  name: 'memory_fit',
  temporary: true,
  reject: (candidate, job, { now }) => {
    const { availableGb, costGb, loading, model } = candidate
    // On its way into memory: its room is booked already.
    if (loading === model) return undefined
    if (availableGb === undefined || costGb === undefined || !needsLoad(candidate, job, now)) return undefined
    const evictable = candidate.others.reduce((sum, other) => sum + (other.busy ? 0 : (other.memoryGb ?? 0)), 0)
    const own = candidate.resident?.memoryGb ?? 0
    const have = availableGb + evictable + own
    return have >= costGb ? undefined : { need: costGb, have, unit: 'GB' }
  },
}
