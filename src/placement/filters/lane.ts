import { hasLane, isForOtherLane, laneOf } from '../../domain/lanes'
import type { Filter } from './filter'

/** Servers of that kind have no endpoint for it, or the model, or else the node by its roles, is for something else. */
export const laneMissing: Filter = {
  name: 'lane_missing',
  temporary: false,
  reject: ({ node, stored }, { needs }) => {
    const lane = laneOf(needs)
    return hasLane(node.kind, lane) && !isForOtherLane(stored.capabilities ?? node.roles, lane) ? undefined : {}
  },
}

/** The node says that it cannot do this now, whatever else it can. */
export const laneDown: Filter = {
  name: 'lane_down',
  temporary: true,
  reject: ({ lanesDown }, { needs }) => (lanesDown?.includes(laneOf(needs)) ? {} : undefined),
}
