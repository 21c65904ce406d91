import type { Filter } from './filter'

/** Somebody paused or drains the node. */
export const paused: Filter = {
  name: 'paused',
  temporary: true,
  ofCandidate: true,
  reject: ({ admission }) => (admission === 'open' ? undefined : {}),
}
