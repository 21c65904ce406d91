import type { Filter } from './filter'

/** This request could not reach it, which is cured by the next poll that it answers. */
export const unreachable: Filter = {
  name: 'unreachable',
  temporary: true,
  ofCandidate: true,
  reject: ({ isUnreached }) => (isUnreached ? {} : undefined),
}
