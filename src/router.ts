import { join } from 'node:path'
import { type Started, startFleet } from '../actors'
import { createCheckpointThread } from './checkpoint-thread'
import type { Build } from './cli/version'
import type { Disk } from './config/from-disk'
import { createLiveConfig } from './config/live'
import { type ConfigSource, createReloader, type Reloader } from './config/reload'
import type { Config } from './domain/config'
import type { Fact } from './domain/facts'
import { Buffered } from './http/buffered'
import { createManage } from './http/manage'
import { createServer } from './http/server'
import { createSamples } from './learning/service-times'
import { adapterFor } from './nodes'
import { createNodeHttp } from './nodes/fetch-http'
import { createGateway } from './nodes/gateway'
import type { NodeHttp } from './nodes/http'
import { createUpstreamClient } from './nodes/http1'
import { createTokenCount } from './nodes/token-count'
import type { UpstreamClient } from './nodes/upstream'
import { createAdmissions } from './observe/admissions'
import { createDecisions } from './observe/decisions'
import { replyHeaders } from './observe/headers'
import { createJournal } from './observe/journal'
import { learnFrom } from './learning/learn'
import { createLog, type Log } from './observe/log'
import { createMetrics } from './observe/metrics'
import { createUsage } from './observe/usage'
import type { Journal } from './ports/journal'
import { openMemoryStore } from './store/memory'
import { openStore } from './store/sqlite'
import type { Store } from './store/store'
import { dataFolder, systemClock, systemRandom } from './system'
import { dialects } from './wire'
import type { Exchange } from './wire/exchange'
import { SlotMap } from './domain/slot-map'

const clock = systemClock

const storeFor = (config: Config, env: Disk['env']): Store => {
  const options = {
    clock,
    get keepTracesMs() {
      return config.state.keepTracesMs
    },
  }
  return config.state.backend === 'memory'
    ? openMemoryStore(options)
    : openStore(
        Object.assign(options, {
          path: join(dataFolder(config.state.path, env), 'fleet.db'),
          checkpoints: createCheckpointThread(),
        }),
      )
}

const countBy = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** A router that listens; `close` after the fleet has stopped. */
export interface Router {
  readonly fleet: Started
  /** The configuration in force, which may be replaced while the router runs. */
  readonly config: Config
  /** Reads the configuration again when it is asked to, or when the file changes; absent without a source. */
  readonly reloader?: Reloader
  readonly decisions: ReturnType<typeof createDecisions>
  readonly exchanges: Pick<SlotMap<Exchange>, 'size'>
  /** How much of the bodies of requests is in memory. */
  readonly buffered: Pick<Buffered, 'bytes'>
  readonly upstream: UpstreamClient
  readonly http: NodeHttp
  readonly journal: Journal
  readonly log: Log
  readonly store: Store
  readonly instance: string
  readonly url: string
  readonly port: number
  /** Every fact from now on; returns how to stop. */
  listenTo(hear: (fact: Fact) => void): () => void
  /** Takes no more connections; with `force` it also cuts those that are open. */
  stopListening(force: boolean): Promise<void>
  close(): void
}

/** Builds the whole router from its configuration and starts listening. */
export const openRouter = async (
  first: Config,
  env: Disk['env'],
  { version, commit }: Pick<Build, 'version' | 'commit'>,
  source?: ConfigSource,
): Promise<Router> => {
  const live = createLiveConfig(first)
  const { config } = live
  const instance = systemRandom.id('fleet')
  const store = storeFor(config, env)
  const log = createLog({ level: config.log.level, format: config.log.format })
  const samples = createSamples(store.learned)
  const decisions = createDecisions({ version, store })
  const usage = createUsage(store.usage)
  const buffered = new Buffered({
    get maxBufferedBytes() {
      return config.server.maxBufferedBytes
    },
  })
  const isConfigured = (node: string): boolean => config.nodes.some(({ name }) => name === node)
  const admissions = createAdmissions(store.admissions, isConfigured, clock.now)
  // The metrics ask the fleet at each scrape, and the fleet tells them its facts: one of the two has to come first.
  let fleet: Started
  const metrics = createMetrics({
    get maxModels() {
      return config.metrics.maxModels
    },
    get perKey() {
      return config.metrics.perKey
    },
    commit,
    snapshot: () => ({ nodes: fleet.nodes(), overview: fleet.overview(), bufferedBytes: buffered.bytes }),
    actors: () => countBy(fleet.actors().map(({ machine }) => machine)),
  })
  const listeners = new Set<(fact: Fact) => void>()
  const hear = (fact: Fact): void => {
    for (const listener of listeners) listener(fact)
  }
  const journal = createJournal([
    decisions,
    usage,
    admissions,
    metrics,
    log,
    learnFrom(samples),
    { name: 'listeners', hear },
  ])
  const exchanges = new SlotMap<Exchange>()
  const http = createNodeHttp({
    instance,
    now: clock.now,
    get timeoutMs() {
      return config.health.pollTimeoutMs
    },
  })
  const upstream = createUpstreamClient({
    now: clock.now,
    get idleMs() {
      return config.limits.connectionIdleMs
    },
  })
  const gateway = createGateway({
    adapters: adapterFor,
    http,
    upstream,
    exchanges,
    clock,
    get limits() {
      return config.limits
    },
    instance,
    isRemembered: config.state.backend !== 'memory',
  })
  fleet = startFleet(
    first,
    {
      gateway,
      clock,
      journal,
      samples,
      identities: store.identities,
      admissionOf: admissions.of,
      random: systemRandom.next,
      precise: () => performance.now(),
    },
    { instance, version },
  )
  const apply = (next: Config): void => {
    live.replace(next)
    log.configure(next.log)
    fleet.configure(next)
  }
  const reloader = source && createReloader({ source, running: () => config, apply, journal, clock })
  const server = createServer({
    config,
    fleet,
    decisions,
    usage,
    videos: store.videos,
    dialects,
    exchanges,
    buffered,
    journal,
    manage: createManage({ gateway, exchanges, journal, clock }),
    replyHeaders,
    metrics,
    bytesPerToken: samples.bytesPerToken,
    countTokens: createTokenCount({ adapters: adapterFor, http }),
    ...(reloader ? { reload: () => reloader.reload('api') } : {}),
    random: systemRandom,
    clock,
    instance,
    version,
    log,
  })
  const { url, port } = await server.listen()
  journal.record({ type: 'config.applied', at: clock.now(), cause: 'start', changed: 0, waiting: [] })
  const listenTo = (listener: (fact: Fact) => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const close = (): void => {
    reloader?.stop()
    upstream.close()
    metrics.close()
    log.flush()
    store.close()
  }
  return {
    fleet,
    config,
    ...(reloader ? { reloader } : {}),
    decisions,
    exchanges,
    buffered,
    upstream,
    http,
    journal,
    log,
    store,
    instance,
    url,
    port,
    listenTo,
    stopListening: server.stop,
    close,
  }
}
