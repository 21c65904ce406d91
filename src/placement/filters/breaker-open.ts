import type { Filter } from './filter'

/** Its requests failed lately; in half-open one probe at a time may pass. */
export const breakerOpen: Filter = {
  name: 'breaker_open',
  temporary: true,
  ofCandidate: true,
  reject: ({ breaker }) => (breaker === 'open' ? {} : undefined),
}
