import type { Capability } from '../../domain/job'
import type { Filter } from './filter'

const ROLES: ReadonlySet<Capability> = new Set(['chat', 'completion', 'embedding', 'vision'])

/** The configuration gives the node other roles. */
export const role: Filter = {
  name: 'role',
  temporary: false,
  reject: ({ node }, { needs }) => {
    const { roles } = node
    if (roles === undefined) return undefined
    return needs.every((need) => !ROLES.has(need) || roles.includes(need)) ? undefined : {}
  },
}
