import { isServable } from '../window'
import type { Signal } from './signal'

/** +50 in memory, +30 left memory less than half an hour ago (the page cache still has it), +10 on disk. */
export const warmth: Signal = {
  name: 'warmth',
  score(candidate, job, { now }, { warmth: points }) {
    if (isServable(candidate, job, now)) return points.hot
    const { unloadedAt } = candidate
    return unloadedAt !== undefined && now - unloadedAt < points.recentWithinMs ? points.recent : points.onDisk
  },
}
