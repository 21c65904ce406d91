import { isMeant } from '../../domain/pin'
import type { Filter } from './filter'

/** `X-Fleet-Node` names another node, or a tag that this one does not carry. */
export const pinnedElsewhere: Filter = {
  name: 'pinned_elsewhere',
  temporary: false,
  concerns: ({ pin }) => pin !== undefined,
  reject: ({ node }, { pin }) => (isMeant(node, pin) ? undefined : {}),
}
