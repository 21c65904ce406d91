import type { Capability } from '../../domain/job'
import type { Filter } from './filter'

const ROLES: ReadonlySet<Capability> = new Set([
  'chat',
  'completion',
  'embedding',
  'vision',
  'rerank',
  'transcription',
  'speech',
  'music',
  'image',
  'video',
])

/** The configuration gives the node other roles. */
export const role: Filter = {
  name: 'role',
  temporary: false,
  concerns: ({ needs }) => needs.length > 0,
  reject: ({ node }, { needs }) => {
    const { roles } = node
    if (roles === undefined) return undefined
    return needs.every((need) => !ROLES.has(need) || roles.includes(need)) ? undefined : {}
  },
}
