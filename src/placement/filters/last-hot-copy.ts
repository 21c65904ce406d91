import { pushesOutKept } from '../eviction'
import { needsLoad } from '../window'
import type { Filter } from './filter'

/** Loading it would push out the only copy of a model that was just in use. */
export const lastHotCopy: Filter = {
  name: 'last_hot_copy',
  temporary: true,
  reject: (candidate, job, { now }) =>
    candidate.keeps !== undefined && needsLoad(candidate, job, now) && pushesOutKept(candidate) ? {} : undefined,
}
