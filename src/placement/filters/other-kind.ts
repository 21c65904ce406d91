import { canAll } from './capability'
import type { Filter } from './filter'

/** The alias wants stand-ins that can do all that its first model can, and this one is known not to. */
export const otherKind: Filter = {
  name: 'other_kind',
  temporary: false,
  concerns: ({ standInNeeds = [] }) => standInNeeds.length > 0,
  reject: ({ choice, stored }, { standInNeeds = [] }) =>
    choice === 0 || canAll(stored.capabilities, standInNeeds) ? undefined : {},
}
