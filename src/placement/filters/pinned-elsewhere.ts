import type { Filter } from './filter'

/** `X-Fleet-Node` names another node, or a tag that this one does not carry. */
export const pinnedElsewhere: Filter = {
  name: 'pinned_elsewhere',
  temporary: false,
  concerns: ({ pin }) => pin !== undefined,
  reject: ({ node }, { pin }) => {
    if (pin === undefined) return undefined
    const isMeant = pin.startsWith('#') ? node.tags.includes(pin.slice(1)) : node.name === pin
    return isMeant ? undefined : {}
  },
}
