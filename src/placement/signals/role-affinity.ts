import type { Signal } from './signal'

const BASE = 5
const GBPS_PER_POINT = 40
const MIDDLE_SHARE = 0.6
const SMALL_FROM = 18
const SMALL_LEAST = 3

/** Where the bandwidth is unknown, by total memory: [at most GB, points], else the last. */
const LARGE_BY_MEMORY = (totalGb: number): number => (totalGb >= 128 ? 15 : totalGb >= 32 ? 5 : 0)
const SMALL_BY_MEMORY = (totalGb: number): number => (totalGb <= 32 ? 15 : totalGb <= 128 ? 8 : 3)
const MIDDLE_BY_MEMORY = 5

/** 0 to +25: large models belong on fast machines, small ones on slower ones. */
export const roleAffinity: Signal = {
  name: 'role_affinity',
  score(
    { node, stored, costGb, totalGb },
    _job,
    _context,
    { roleAffinity: { max }, roleLargeThresholdGb, roleSmallThresholdGb },
  ) {
    const sizeGb = stored.sizeGb ?? costGb
    if (sizeGb === undefined) return 0
    const bandwidth = node.bandwidthGBps
    if (bandwidth !== undefined) {
      const bonus = Math.min(max, BASE + bandwidth / GBPS_PER_POINT)
      if (sizeGb > roleLargeThresholdGb) return bonus
      if (sizeGb < roleSmallThresholdGb) return Math.max(SMALL_LEAST, SMALL_FROM - MIDDLE_SHARE * bonus)
      return MIDDLE_SHARE * bonus
    }
    if (totalGb === undefined) return 0
    if (sizeGb > roleLargeThresholdGb) return LARGE_BY_MEMORY(totalGb)
    return sizeGb < roleSmallThresholdGb ? SMALL_BY_MEMORY(totalGb) : MIDDLE_BY_MEMORY
  },
}
