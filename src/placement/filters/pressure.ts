import type { Filter } from './filter'

/** The machine reports critical memory pressure. */
export const pressureCritical: Filter = {
  name: 'pressure_critical',
  temporary: true,
  ofCandidate: true,
  reject: ({ pressure }) => (pressure === 'critical' ? {} : undefined),
}
