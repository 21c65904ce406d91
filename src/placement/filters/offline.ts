import type { Filter } from './filter'

/** The node does not answer its polls. */
export const offline: Filter = {
  name: 'offline',
  temporary: true,
  ofCandidate: true,
  reject: ({ health }) => (health === 'offline' ? {} : undefined),
}
