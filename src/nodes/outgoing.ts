import type { NodeDescription } from '../domain/node'
import type { UpstreamRequest } from '../wire/exchange'

/** Where a request goes and with which headers. */
export interface Envelope {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

interface Known extends Envelope {
  readonly path: string
  /** As the dialect gave them. */
  readonly given: Readonly<Record<string, string>>
}

/** Set here or by the HTTP client, whatever a dialect puts into its headers. */
const OURS = new Set(['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'host', 'connection'])

/** Of one node; past this the memory is simply emptied. */
const MAX_KNOWN = 16

type Headers = Readonly<Record<string, string>>

const isEqual = (one: Headers, other: Headers): boolean => {
  for (const name in one) if (one[name] !== other[name]) return false
  for (const name in other) if (one[name] === undefined) return false
  return true
}

/**
 * Requests to a node go to few paths with few sets of headers. The same ones get the same envelope, by which the client
 * then knows what it has sent before.
 */
export const createEnvelopes = (instance: string) => {
  const byNode = new WeakMap<NodeDescription, Known[]>()

  const headersFor = (node: NodeDescription, given: Headers): Headers => {
    const headers: Record<string, string> = { 'x-fleet-via': instance }
    for (const name in given) {
      if (!OURS.has(name)) headers[name] = given[name] as string
    }
    if (node.key !== undefined) headers.authorization = `Bearer ${node.key}`
    return headers
  }

  return (node: NodeDescription, { path, headers: given }: UpstreamRequest): Envelope => {
    const known = byNode.get(node) ?? []
    for (const one of known) if (one.path === path && isEqual(one.given, given)) return one
    const made: Known = { path, given, url: node.url + path, headers: headersFor(node, given) }
    if (known.length >= MAX_KNOWN) known.length = 0
    known.push(made)
    byNode.set(node, known)
    return made
  }
}
