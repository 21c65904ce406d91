import { type Config, DEFAULT_PRIORITIES } from '../../src/domain/config'
import type { Fact, Failure } from '../../src/domain/facts'
import type { Job } from '../../src/domain/job'
import type { NodeDescription, NodeReport } from '../../src/domain/node'
import type {
  Call,
  Flow,
  LoadOptions,
  NodeGateway,
  Reply,
  ReplyListener,
  ReplySummary,
} from '../../src/ports/node-gateway'
import { createSamples } from '../../src/learning/service-times'
import type { Samples } from '../../src/ports/samples'
import { seededRandom } from '../../src/sim/seeded-random'
import { VirtualClock } from '../../src/sim/virtual-clock'
import { startFleet } from '../../actors'

/** A configuration with the product's defaults. */
export const testConfig = (change: { [K in keyof Config]?: Partial<Config[K]> } = {}): Config => {
  const base: Config = {
    server: {
      host: '127.0.0.1',
      port: 0,
      maxBodyBytes: 64e6,
      maxBufferedBytes: 1024e6,
      shutdownGraceMs: 60_000,
      holdHeadersMs: 10_000,
      loadingNotes: 'comment',
      stripBillingHeader: true,
      repairToolCalls: false,
    },
    auth: { mode: 'open', keys: [] },
    discovery: { local: false, everyMs: 30_000 },
    nodes: [],
    policy: { use: 'residency', holdTimeoutMs: 30_000, rescoreEveryMs: 2_000, swapAfterMs: 15_000, retries: 2 },
    priorities: DEFAULT_PRIORITIES,
    limits: {
      waitingTotal: 10_000,
      waitingPerModel: 2_000,
      queuePerNode: 50,
      connectTimeoutMs: 3_000,
      loadTimeoutMinMs: 300_000,
      firstTokenTimeoutMs: 600_000,
      streamIdleTimeoutMs: 120_000,
      videoTimeoutMs: 7_200_000,
      connectionIdleMs: 15_000,
    },
    health: {
      pollEveryMs: 2_000,
      pollTimeoutMs: 5_000,
      offlineAfter: 3,
      breakerFailures: 5,
      breakerWindowMs: 30_000,
      breakerRetryMs: 5_000,
      breakerRetryMaxMs: 60_000,
      stallAfterMs: 60_000,
      stallRequests: 3,
    },
    state: { backend: 'memory', path: '', keepTracesMs: 7 * 86_400_000 },
    metrics: { enabled: true, maxModels: 200, perKey: false },
    log: { level: 'warn', format: 'json' },
  }
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(change)) {
    merged[key] = Array.isArray(value) ? value : { ...(base[key as keyof Config] as object), ...(value as object) }
  }
  return merged as unknown as Config
}

export const testNode = (name: string, change: Partial<NodeDescription> = {}): NodeDescription => ({
  name,
  kind: 'llamacpp',
  url: `http://${name}`,
  origin: 'configured',
  tags: [],
  distance: 0,
  ...change,
})

export const resident = (model = 'm', slots = 1): NodeReport => ({
  models: [{ name: model }],
  resident: [{ name: model, state: 'ready', slots }],
  canLoad: false,
  canUnload: false,
})

let serial = 0
export const testJob = (change: Partial<Job> = {}): Job => ({
  id: `req_${(serial++).toString(36).padStart(6, '0')}`,
  dialect: 'openai',
  operation: 'openai.chat',
  asked: 'm',
  models: [change.asked ?? 'm'],
  stream: true,
  needs: ['chat'],
  priority: 'normal',
  promptTokens: { value: 10, basis: 'estimated' },
  tags: [],
  arrivedAt: 1_800_000_000_000,
  ...change,
})

/** A forward that is under way at a scripted node; the test decides how it goes on. */
export interface Running {
  readonly call: Call
  readonly signal: AbortSignal
  readonly flow: Flow
  start(status?: number): void
  finish(summary?: Partial<ReplySummary>): void
  fail(failure?: Partial<Failure>): void
  reject(status: number): void
  leave(): void
}

export class ScriptedGateway implements NodeGateway {
  readonly reports = new Map<string, NodeReport | Error | 'hang'>()
  readonly running: Running[] = []
  readonly loads: {
    node: string
    model: string
    options: LoadOptions
    signal: AbortSignal
    done(): void
    fail(reason: string | Error): void
  }[] = []
  readonly cuts: { request: string; failure: Failure }[] = []
  polls = 0
  /** Called for each forward as it begins; may finish it at once. */
  onForward: (running: Running) => void = () => {}

  readonly #clock: VirtualClock

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  report(node: NodeDescription, signal: AbortSignal): Promise<NodeReport> {
    this.polls += 1
    const report = this.reports.get(node.name)
    if (report === 'hang')
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    if (report === undefined || report instanceof Error)
      return Promise.reject(report ?? new Error('connection refused'))
    return Promise.resolve(report)
  }

  load(node: NodeDescription, model: string, options: LoadOptions, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.loads.push({
        node: node.name,
        model,
        options,
        signal,
        done: resolve,
        fail: (reason) => reject(typeof reason === 'string' ? new Error(reason) : reason),
      })
    })
  }

  unload(): Promise<void> {
    return Promise.resolve()
  }

  cut(request: string, failure: Failure): void {
    this.cuts.push({ request, failure })
  }

  forward(call: Call, listener: ReplyListener, signal: AbortSignal): Flow {
    const sentAt = this.#clock.now()
    const flow: Flow = { lastByteAt: sentAt, bytes: 0, clientStalledSince: 0 }
    const over = () => {
      const at = this.running.indexOf(running)
      if (at >= 0) this.running.splice(at, 1)
    }
    const reply = (status: number): Reply => ({ status, headers: {}, body: new Uint8Array() })
    const running: Running = {
      call,
      signal,
      flow,
      start: (status = 200) => listener.started(reply(status), this.#clock.now() - sentAt),
      finish: (summary = {}) => {
        over()
        listener.finished({
          end: 'completed',
          status: 200,
          bytes: 100,
          durationMs: this.#clock.now() - sentAt,
          ...summary,
        })
      },
      fail: (failure = {}) => {
        over()
        listener.failed({
          class: 'reset',
          message: 'connection reset',
          bytes: 0,
          elapsedMs: this.#clock.now() - sentAt,
          ...failure,
        })
      },
      reject: (status) => {
        over()
        listener.failed({ class: 'rejected', message: 'bad request', status, bytes: 0, elapsedMs: 0 }, reply(status))
      },
      leave: () => {
        over()
        listener.left(flow.bytes)
      },
    }
    signal.addEventListener('abort', over)
    this.running.push(running)
    this.onForward(running)
    return flow
  }
}

/** Nothing was ever measured, and nothing is. */
export const noSamples = (): Samples => ({ ...createSamples(), addLoad: () => {} })

/** A whole fleet on virtual time, over scripted nodes. */
export const host = (
  nodes: Readonly<Record<string, NodeReport | Error | 'hang'>>,
  change: Parameters<typeof testConfig>[0] & {
    describe?: (name: string) => Partial<NodeDescription>
    samples?: Samples
    /** Hears each fact first; may throw, as a broken journal does. */
    record?: (fact: Fact) => void
  } = {},
) => {
  const { describe, samples, record, ...config } = change
  const clock = new VirtualClock()
  const gateway = new ScriptedGateway(clock)
  for (const [name, report] of Object.entries(nodes)) gateway.reports.set(name, report)
  const facts: Fact[] = []
  const fleet = startFleet(
    testConfig({ ...config, nodes: Object.keys(nodes).map((name) => testNode(name, describe?.(name))) as never }),
    {
      gateway,
      clock,
      journal: {
        record: (fact) => {
          record?.(fact)
          facts.push(fact)
        },
      },
      samples: samples ?? noSamples(),
      random: seededRandom(1).next,
      precise: () => clock.now(),
    },
    { instance: 'test', version: '0.0.0' },
  )
  const submit = (change: Partial<Job> = {}) => {
    const job = testJob({ arrivedAt: clock.now(), ...change })
    const client = new AbortController()
    const outcome = fleet.submit(job, client.signal).then(
      (reply) => ({ reply }) as const,
      (error: unknown) => ({ error }) as const,
    )
    return { job, client, outcome, leave: () => client.abort() }
  }
  const settled = () => facts.filter((fact) => fact.type === 'request.settled')
  return {
    fleet,
    clock,
    gateway,
    facts,
    submit,
    settled,
    ready: () => clock.advance(10),
    of: <T extends Fact['type']>(type: T) => facts.filter((fact) => fact.type === type) as Extract<Fact, { type: T }>[],
    /** Everything is back at zero. */
    expectIdle: () => {
      fleet.shared.desk.ledger.check()
      const { inFlight, waiting, held } = fleet.overview()
      const counts = {
        inFlight,
        waiting,
        held,
        requests: fleet.shared.requests.size,
        arrived: facts.filter(({ type }) => type === 'request.arrived').length - settled().length,
      }
      const off = Object.entries(counts).filter(([, count]) => count !== 0)
      if (off.length > 0) throw new Error(`not idle: ${JSON.stringify(Object.fromEntries(off))}`)
    },
  }
}
