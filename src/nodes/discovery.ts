import { hostname, networkInterfaces } from 'node:os'
import { serverKey } from '../domain/base-url'
import type { NodeDescription } from '../domain/node'
import type { Clock } from '../ports/clock'
import { identify, type Sighting } from './fingerprint'
import type { NodeHttp } from './http'

/**
 * Where engines listen by default: Ollama; LM Studio and sd-server; llama-server, llama-swap, whisper.cpp and mlx_lm; vLLM;
 * KoboldCpp; SGLang; mlx-omni; llama-server (to come); A1111.
 */
export const ENGINE_PORTS: readonly number[] = [11434, 1234, 8080, 8000, 5001, 30000, 10240, 9931, 7860]

const OLLAMA_PORT = 11434
/** For all questions to one port. */
const PROBE_MS = 1_500

/** The addresses on this machine at which engines usually listen. */
export const localCandidates = (ports: readonly number[] = ENGINE_PORTS): string[] =>
  ports.map((port) => `http://127.0.0.1:${port}`)

export interface DiscoveryOptions {
  readonly http: NodeHttp
  readonly ports?: readonly number[]
  /** From the end of one scan to the start of the next, in ms. Read after each scan. */
  readonly everyMs: number
  readonly clock: Clock
  /** All nodes the fleet has now, configured or found. */
  known(): readonly NodeDescription[]
  /** Our own listener's port. */
  readonly ownPort: number
  found(node: NodeDescription, version?: string): void
}

export interface Discovery {
  /** Scans at once and then at intervals. */
  start(): void
  /** Ends the interval and a scan that is running; nothing is found after this. */
  stop(): void
  /** One scan now, or the one that is running; resolves with the nodes that it found. */
  scanOnce(): Promise<readonly NodeDescription[]>
}

/**
 * Finds engines on this machine. What was found once is not reported again, also when it vanished (its health decides)
 * or was removed by hand. Other routers and this one are never adopted; the children of llama-swap, LM Studio and
 * Ollama listen on random ports, which are not looked at.
 */
export const createDiscovery = (options: DiscoveryOptions): Discovery => {
  const { http, ports = ENGINE_PORTS, clock, known, ownPort, found } = options
  const adopted = new Set<string>()
  const life = new AbortController()
  let timer: unknown
  let running: Promise<readonly NodeDescription[]> | undefined

  const probe = async (url: string): Promise<Sighting | undefined> => {
    const deadline = new AbortController()
    const alarm = clock.setTimeout(() => deadline.abort(), PROBE_MS)
    try {
      const sighting = await identify(url, http, AbortSignal.any([deadline.signal, life.signal]))
      return sighting && sighting.kind !== 'fleet' ? sighting : undefined
    } finally {
      clock.clearTimeout(alarm)
    }
  }

  const adopt = (sighting: Sighting): NodeDescription | undefined => {
    const nodes = known()
    const keyOf = machineKeys()
    const key = keyOf(sighting.url)
    // Asked again: the node may have been added by hand while the probe ran.
    if (adopted.has(key) || addressesOf(nodes).some((url) => keyOf(url) === key)) return undefined
    const { kind, url, version } = sighting
    const name = freeName(nameFor(sighting), nodes)
    const node: NodeDescription = { name, kind, url, origin: 'discovered', tags: [], distance: 0 }
    adopted.add(key)
    found(node, version)
    return node
  }

  const scan = async (): Promise<readonly NodeDescription[]> => {
    const keyOf = machineKeys()
    const taken = new Set([...adopted, ...addressesOf(known()).map(keyOf)])
    const urls = localCandidates(ports.filter((port) => port !== ownPort)).filter((url) => !taken.has(keyOf(url)))
    // Side by side, each adopted as soon as it is certain: a port that hangs delays no other.
    const nodes = await Promise.all(
      urls.map(async (url) => {
        const sighting = await probe(url)
        return sighting && adopt(sighting)
      }),
    )
    return nodes.filter((node) => node !== undefined)
  }

  const scanOnce = (): Promise<readonly NodeDescription[]> => {
    running ??= scan().finally(() => {
      running = undefined
    })
    return running
  }

  const loop = async (): Promise<void> => {
    try {
      await scanOnce()
    } finally {
      if (!life.signal.aborted) timer = clock.setTimeout(() => void loop(), options.everyMs)
    }
  }

  return {
    start: () => void loop(),
    stop() {
      life.abort()
      clock.clearTimeout(timer)
    },
    scanOnce,
  }
}

const addressesOf = (nodes: readonly NodeDescription[]): readonly string[] =>
  nodes.flatMap(({ url, residencyUrl }) => (residencyUrl === undefined ? [url] : [url, residencyUrl]))

/** `ollama` for the usual one, else product and port: readable, and the same after every restart. */
const nameFor = ({ product, url }: Sighting): string => {
  const port = new URL(url).port || '80'
  return product === 'ollama' && Number(port) === OLLAMA_PORT ? product : `${product}-${port}`
}

const freeName = (name: string, nodes: readonly NodeDescription[]): string => {
  const taken = new Set(nodes.map((node) => node.name))
  let free = name
  for (let i = 2; taken.has(free); i += 1) free = `${name}-${i}`
  return free
}

/** `serverKey`, with all names and addresses of this machine as one: a node configured by its LAN address is known. */
const machineKeys = (): ((url: string) => string) => {
  const own = hostname().toLowerCase()
  const names = new Set([own, `${own}.local`])
  for (const addresses of Object.values(networkInterfaces()))
    for (const { address } of addresses ?? []) names.add(address)

  return (url) => {
    const parsed = new URL(url)
    if (names.has(parsed.hostname.replace(/^\[|\]$/g, ''))) parsed.hostname = '127.0.0.1'
    return serverKey(parsed.href)
  }
}
