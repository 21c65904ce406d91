import type { Filter } from './filter'

/** The node has not answered a poll yet: nobody knows what it holds. */
export const notInventoried: Filter = {
  name: 'not_inventoried',
  temporary: true,
  ofCandidate: true,
  reject: ({ health }) => (health === 'unknown' ? {} : undefined),
}
