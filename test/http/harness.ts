import { DEFAULT_PRIORITIES } from '../../src/domain/config'
import type { RouterError } from '../../src/domain/errors'
import type { Fact } from '../../src/domain/facts'
import type { Job } from '../../src/domain/job'
import type { DecisionRecord } from '../../src/domain/record'
import { Buffered } from '../../src/http/buffered'
import type { ServerDeps } from '../../src/http/deps'
import { createServer } from '../../src/http/server'
import type { Fleet, ModelView, NodeView, Overview } from '../../src/ports/fleet'
import type { Reply } from '../../src/ports/node-gateway'
import type { Arrival, Dialect } from '../../src/wire/dialect'
import type { Exchange } from '../../src/wire/exchange'
import { testConfig } from '../support/host'

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const json = (body: unknown, init: { status?: number } = {}): Reply => ({
  status: init.status ?? 200,
  headers: { 'content-type': 'application/json' },
  body: bytes(JSON.stringify(body)),
})

export const overview: Overview = {
  instance: 'inst-1',
  version: '1.2.3',
  startedAt: 0,
  draining: false,
  inFlight: 0,
  waiting: 0,
  held: 0,
  nodes: 1,
  healthyNodes: 1,
  models: 1,
  requests: {},
}

export const nodeView = (name: string): NodeView => ({
  name,
  kind: 'ollama',
  url: 'http://10.0.0.2:11434',
  origin: 'configured',
  tags: [],
  version: '0.33.0',
  health: 'online',
  admission: 'open',
  breaker: 'closed',
  state: 'online',
  inFlight: 0,
  models: [],
  resident: [],
  queues: [],
})

export const modelView = (name: string, node = 'box'): ModelView => ({
  name,
  key: name.toLowerCase(),
  nodes: [{ node, name, online: true, state: 'disk', stored: { name, sizeGb: 4, digest: 'sha256:ab' } }],
})

export const record = (id: string, model = 'qwen'): DecisionRecord => ({
  id,
  at: 0,
  asked: {
    model,
    dialect: 'openai',
    operation: 'openai.chat',
    stream: false,
    priority: 'normal',
    tags: [],
    promptTokens: { value: 3, basis: 'estimated' },
  },
  models: [model],
  rounds: [],
  phases: [],
  failures: [],
  version: '1.2.3',
})

/** A dialect without rules of its own: the body is JSON with `model` and `stream`; errors tell code and message. */
const stubDialect = (name: 'openai' | 'ollama', path: string, seen: Arrival[]): Dialect => ({
  name,
  inference: [
    {
      method: 'POST',
      path,
      decode: (arrival) => {
        seen.push(arrival)
        const fields = JSON.parse(new TextDecoder().decode(arrival.body)) as { model: string; stream?: boolean }
        const job: Job = {
          id: arrival.id,
          dialect: name,
          operation: `${name}.chat`,
          asked: fields.model,
          models: [fields.model],
          stream: fields.stream ?? false,
          needs: [],
          promptTokens: { value: 1, basis: 'estimated' },
          arrivedAt: arrival.at,
          ...arrival.context,
        }
        return { job } as Exchange
      },
    },
  ],
  refuse: (error) =>
    Response.json(
      { shape: name, code: error.code, message: error.message, ...error.details },
      { status: statusOf(error) },
    ),
})

const statuses: Partial<Record<RouterError['code'], number>> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  request_too_large: 413,
  client_disconnected: 499,
  loop_detected: 508,
  no_capacity: 503,
}

const statusOf = (error: RouterError): number => statuses[error.code] ?? 500

export interface Setup {
  readonly submit?: (job: Job, signal: AbortSignal) => Promise<Reply>
  readonly auth?: ServerDeps['config']['auth']
  readonly maxBodyBytes?: number
  readonly maxBufferedBytes?: number
  readonly host?: string
  readonly port?: number
  readonly dialects?: readonly Dialect[]
  readonly fleet?: Partial<Fleet>
  readonly records?: readonly DecisionRecord[]
  readonly metrics?: ServerDeps['metrics']
  readonly discovery?: boolean
  readonly replyHeaders?: ServerDeps['replyHeaders']
  readonly bytesPerToken?: ServerDeps['bytesPerToken']
  readonly countTokens?: ServerDeps['countTokens']
}

/** A server over a stub fleet, with what went through it. */
export const host = (setup: Setup = {}) => {
  const arrivals: Arrival[] = []
  const jobs: Job[] = []
  const admissions: [string, string][] = []
  const warnings: [Readonly<Record<string, unknown>>, string][] = []
  const exchanges = new Map<string, Exchange>()
  const records = setup.records ?? []
  const facts: Fact[] = []
  const maxBufferedBytes = setup.maxBufferedBytes ?? 1_024_000_000
  const buffered = new Buffered({ maxBufferedBytes })
  let ids = 0

  const fleet: Fleet = {
    submit: (job, signal) => {
      jobs.push(job)
      return setup.submit ? setup.submit(job, signal) : Promise.resolve(json({ ok: true }))
    },
    headersSent: () => {},
    running: () => 0,
    overview: () => overview,
    descriptions: () => [],
    nodes: () => [nodeView('box')],
    learned: (name) => (name === 'box' ? { samples: 3, latencyMs: 900, models: [] } : undefined),
    models: () => [modelView('qwen:7b')],
    chainOf: (asked) => [asked],
    queues: () => [],
    waiters: () => [],
    actors: () => [],
    ready: () => true,
    addNode: () => {},
    removeNode: () => {},
    setAdmission: (name, admission) => {
      if (name !== 'box') return false
      admissions.push([name, admission])
      return true
    },
    stop: async () => ({ cut: 0 }),
    ...setup.fleet,
  }
  const server = createServer({
    config: {
      server: {
        host: setup.host ?? '127.0.0.1',
        port: setup.port ?? 0,
        maxBodyBytes: setup.maxBodyBytes ?? 64_000_000,
        maxBufferedBytes,
        shutdownGraceMs: 1_000,
        holdHeadersMs: 0,
        loadingNotes: 'comment',
        stripBillingHeader: true,
        repairToolCalls: false,
      },
      auth: setup.auth ?? { mode: 'open', keys: [] },
      priorities: DEFAULT_PRIORITIES,
      discovery: { local: setup.discovery ?? true, everyMs: 30_000 },
      metrics: { enabled: true, maxModels: 200, perKey: false },
      limits: testConfig().limits,
    },
    fleet,
    decisions: {
      get: (id) => records.find((one) => one.id === id),
      last: () => records.at(-1),
      list: ({ limit, clientRequestId, model }) =>
        records
          .filter((one) => clientRequestId === undefined || one.asked.clientRequestId === clientRequestId)
          .filter((one) => model === undefined || one.asked.model === model)
          .slice(0, limit),
    },
    usage: { of: () => [] },
    videos: { load: () => [], save: () => {}, forget: () => {} },
    manage: async () => json({ ok: true }),
    dialects: setup.dialects ?? [
      stubDialect('openai', '/v1/chat/completions', arrivals),
      stubDialect('ollama', '/api/chat', arrivals),
    ],
    exchanges,
    buffered,
    journal: { record: (fact) => facts.push(fact) },
    replyHeaders: setup.replyHeaders ?? (() => ({})),
    ...(setup.metrics ? { metrics: setup.metrics } : {}),
    ...(setup.bytesPerToken ? { bytesPerToken: setup.bytesPerToken } : {}),
    ...(setup.countTokens ? { countTokens: setup.countTokens } : {}),
    random: { next: () => 0, id: (prefix) => `${prefix}_${++ids}` },
    clock: { now: () => 1_000_000, setTimeout: () => 0, clearTimeout: () => {} },
    instance: 'inst-1',
    version: '1.2.3',
    log: { warn: (fields, message) => warnings.push([fields, message]) },
  })

  const get = (path: string, headers: Record<string, string> = {}) =>
    server.handle(new Request(`http://localhost${path}`, { headers: { host: 'localhost:11435', ...headers } }))
  const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
    server.handle(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        headers: { host: 'localhost:11435', ...headers },
      }),
    )
  const chat = (headers: Record<string, string> = {}) => post('/v1/chat/completions', { model: 'qwen' }, headers)

  return { server, get, post, chat, arrivals, jobs, admissions, warnings, exchanges, buffered, facts }
}
