import { serverKey } from './base-url'
import type { NodeDescription } from './node'

/** What a new configuration means for the nodes that are there. */
export interface NodeChanges {
  readonly added: readonly NodeDescription[]
  /** Names. */
  readonly removed: readonly string[]
  /** The same server under other settings: what runs there goes on, what is known of it stays. */
  readonly updated: readonly NodeDescription[]
  /** The same name for another server: nothing that is known of the old one holds. */
  readonly replaced: readonly NodeDescription[]
}

const isSameServer = (a: NodeDescription, b: NodeDescription): boolean =>
  a.kind === b.kind && serverKey(a.url) === serverKey(b.url)

/** Equal in every setting, whatever the order of the keys. */
const isEqual = (a: NodeDescription, b: NodeDescription): boolean => {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof NodeDescription>
  for (const key of keys) if (JSON.stringify(a[key]) !== JSON.stringify(b[key])) return false
  return true
}

/**
 * From the nodes of the fleet to those that are configured now. Nodes that were found or simulated stay, unless the
 * configuration claims their name or their server.
 */
export const nodeChanges = (
  current: readonly NodeDescription[],
  configured: readonly NodeDescription[],
): NodeChanges => {
  const wanted = new Map(configured.map((node) => [node.name, node]))
  const here = new Map(current.map((node) => [node.name, node]))
  const added = configured.filter(({ name }) => !here.has(name))
  const claimed = new Set(added.map(({ url }) => serverKey(url)))
  const removed = current
    .filter(({ name, origin, url }) => !wanted.has(name) && (origin === 'configured' || claimed.has(serverKey(url))))
    .map(({ name }) => name)
  const updated: NodeDescription[] = []
  const replaced: NodeDescription[] = []
  for (const node of configured) {
    const before = here.get(node.name)
    if (before === undefined || isEqual(before, node)) continue
    if (isSameServer(before, node)) updated.push(node)
    else replaced.push(node)
  }
  return { added, removed, updated, replaced }
}
