import { isLoopbackHost, serverKey } from '../domain/base-url'
import type { NodeDescription } from '../domain/node'
import { duplicateNames } from './duplicates'
import type { Listener } from './listen'
import { failure, type Place, type Problem, warning } from './problem'
import type { NodeSettings } from './schema'
import { readNamedSecret, type SecretSources } from './secrets'

type Places = ReadonlyMap<string, Place>

const MB_PER_GB = 1000

/** Two words for one setting: the first is ours, the second is understood. */
const SYNONYMS = [
  ['url', 'base_url'],
  ['memory_gb', 'vram_mb'],
  ['key_env', 'key_file'],
] as const

/** Node descriptions from their settings, checked against each other and against our own address. */
export const resolveNodes = (
  nodes: readonly NodeSettings[],
  listener: Listener,
  places: Places,
  sources: SecretSources,
): { readonly nodes: readonly NodeDescription[]; readonly problems: readonly Problem[] } => {
  const problems: Problem[] = [...duplicateNames(nodes, 'nodes', 'nodes', places), ...sharedUrls(nodes, places)]
  const described: NodeDescription[] = []
  nodes.forEach((node, index) => {
    const path = `nodes[${index}]`
    problems.push(...checkSynonyms(node, path, places), ...checkOwnAddress(node, path, listener, places))
    const url = node.url ?? node.base_url
    if (url === undefined) {
      if (!places.has(`${path}.url`) && !places.has(`${path}.base_url`)) {
        problems.push(failure('missing_key', `${path}.url`, `${path} has no "url"`, places.get(path)))
      }
      return
    }
    const secret = readNamedSecret(node, path, places, sources)
    if (secret && 'problem' in secret) problems.push(secret.problem)
    described.push(describe(node, url, secret && 'secret' in secret ? secret.secret : undefined))
  })
  return { nodes: described, problems }
}

const describe = (node: NodeSettings, url: string, key: string | undefined): NodeDescription => ({
  name: node.name,
  kind: node.kind,
  url,
  origin: 'configured',
  tags: node.tags,
  distance: node.distance,
  ...present('residencyUrl', node.residency_url),
  ...present('memoryGb', node.memory_gb ?? (node.vram_mb === undefined ? undefined : node.vram_mb / MB_PER_GB)),
  ...present('bandwidthGBps', node.bandwidth_gbps),
  ...present('maxConcurrency', node.max_concurrency),
  ...present('roles', node.roles),
  ...present('models', node.models),
  ...present('keepAlive', node.keep_alive),
  ...present('contextTokens', node.context_tokens),
  ...present('key', key),
})

const present = <K extends keyof NodeDescription>(key: K, value: NodeDescription[K] | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: NonNullable<NodeDescription[P]> }

const checkSynonyms = (node: NodeSettings, path: string, places: Places): readonly Problem[] =>
  SYNONYMS.filter(([ours, other]) => node[ours] !== undefined && node[other] !== undefined).map(([ours, other]) => {
    const message = `${path} has both ${ours} and ${other}, which set the same thing; keep one`
    return failure('conflict', `${path}.${other}`, message, places.get(`${path}.${other}`))
  })

/** Legal (two names for one server count its slots twice), so it is a warning. */
const sharedUrls = (nodes: readonly NodeSettings[], places: Places): readonly Problem[] => {
  const urls = nodes.map(({ url, base_url }) => url ?? base_url)
  const byServer = Map.groupBy(urls.keys(), (index) => {
    const url = urls[index]
    return url === undefined ? undefined : serverKey(url)
  })
  return [...byServer].flatMap(([server, indexes]) => {
    if (server === undefined || indexes.length < 2) return []
    const [at, ...also] = indexes.map((index) => urlPlace(index, places)).filter((place) => place !== undefined)
    const names = indexes.map((index) => `"${nodes[index]?.name}"`).join(' and ')
    return [
      warning(
        'duplicate_url',
        `nodes[${indexes[1]}].url`,
        `nodes ${names} are the same server, ${urls[indexes[0] ?? 0]}`,
        at,
        { also },
      ),
    ]
  })
}

const urlPlace = (index: number, places: Places): Place | undefined =>
  places.get(`nodes[${index}].url`) ?? places.get(`nodes[${index}].base_url`)

/** A router that is its own node would send each request round in a circle. */
const checkOwnAddress = (node: NodeSettings, path: string, listener: Listener, places: Places): readonly Problem[] => {
  const own = (['url', 'base_url', 'residency_url'] as const).find((key) => isOwn(node[key], listener))
  if (own === undefined) return []
  const key = `${path}.${own}`
  return [failure('own_address', key, `node "${node.name}" is this router's own address`, places.get(key))]
}

const isOwn = (url: string | undefined, listener: Listener): boolean => {
  if (url === undefined || listener.port === 0) return false
  const { hostname, port } = new URL(url)
  const listensThere =
    hostname === listener.host ||
    (isLoopbackHost(hostname) && (isLoopbackHost(listener.host) || isWildcard(listener.host)))
  return listensThere && Number(port || 80) === listener.port
}

const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::'
