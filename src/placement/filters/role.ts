import type { Capability } from '../../domain/job'
import type { Filter } from './filter'

/** What a model can do besides; a node is given a role for everything else. */
const TRAITS: ReadonlySet<Capability> = new Set(['tools', 'thinking', 'insert', 'audio'])

/** The configuration gives the node other roles. */
export const role: Filter = {
  name: 'role',
  temporary: false,
  concerns: ({ needs }) => needs.length > 0,
  reject: ({ node }, { needs }) => {
    const { roles } = node
    if (roles === undefined) return undefined
    return needs.every((need) => TRAITS.has(need) || roles.includes(need)) ? undefined : {}
  },
}
