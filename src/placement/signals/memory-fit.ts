import { isServable } from '../window'
import type { Signal } from './signal'

/** Points by how often the model fits into what is available; below 1 it was eliminated. */
const TIERS: readonly (readonly [above: number, points: number])[] = [
  [2, 20],
  [1.5, 15],
  [1.2, 8],
]
const TIGHT = 3

/** 0 to +20: how comfortably the model fits. A loaded one already does; unknown memory scores 0. */
export const memoryFit: Signal = {
  name: 'memory_fit',
  score(candidate, job, { now }, { memoryFit: { max } }) {
    if (isServable(candidate, job, now)) return max
    const { availableGb, costGb } = candidate
    if (availableGb === undefined || costGb === undefined || costGb <= 0) return 0
    const ratio = availableGb / costGb
    if (ratio < 1) return 0
    return TIERS.find(([above]) => ratio > above)?.[1] ?? TIGHT
  },
}
