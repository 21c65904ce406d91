import type { NodeDescription } from './node'

/** Whether `X-Fleet-Node` (a name, or a tag written `#tag`) means the node; without it every node is meant. */
export const isMeant = ({ name, tags }: Pick<NodeDescription, 'name' | 'tags'>, pin: string | undefined): boolean =>
  pin === undefined || (pin.startsWith('#') ? tags.includes(pin.slice(1)) : name === pin)
