import type { Capability } from '../../domain/job'
import type { Filter } from './filter'

/** What is not known may be there. */
export const canAll = (capabilities: readonly Capability[] | undefined, needs: readonly Capability[]): boolean =>
  capabilities === undefined ||
  needs.every((need) => capabilities.includes(need === 'chat' ? 'completion' : need) || capabilities.includes(need))

/** The node says what the model can do, and something that the request needs is not among it. Unknown passes. */
export const capability: Filter = {
  name: 'capability_missing',
  temporary: false,
  concerns: ({ needs }) => needs.length > 0,
  reject: ({ stored }, { needs }) => (canAll(stored.capabilities, needs) ? undefined : {}),
}
