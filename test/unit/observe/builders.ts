import type { Fact, FactOf, Outcome } from '../../../src/domain/facts'
import type { Job } from '../../../src/domain/job'
import type { Decision, Eliminated, Ranked } from '../../../src/domain/placement'
import type { DecisionRecord } from '../../../src/domain/record'
import type { NodeView, Overview } from '../../../src/ports/fleet'

export const ARRIVAL = 1_700_000_000_000

export const job = (over: Partial<Job> = {}): Job => ({
  id: 'req_1',
  dialect: 'openai',
  operation: 'openai.chat',
  asked: 'qwen3:8b',
  models: ['qwen3:8b'],
  stream: true,
  needs: ['chat'],
  priority: 'normal',
  promptTokens: { value: 8_190, basis: 'estimated' },
  tags: [],
  arrivedAt: ARRIVAL,
  ...over,
})

export const ranked = (node: string, rank: Ranked['rank'], over: Partial<Ranked> = {}): Ranked => ({
  verdict: 'ranked',
  node,
  model: 'qwen3:8b',
  rank,
  terms: { tier: 'resident', in_flight: Array.isArray(rank) ? (rank[2] ?? 0) : 0 },
  ...over,
})

export const eliminated = (node: string, reason: string, over: Partial<Eliminated> = {}): Eliminated => ({
  verdict: 'eliminated',
  node,
  model: 'qwen3:8b',
  reason,
  ...over,
})

export const tooBig = (node: string): Eliminated =>
  eliminated(node, 'memory_fit', { need: 18.63, have: 7.2, unit: 'GB' })

export const start = (node: string, over: Partial<Decision> = {}): Decision => ({
  kind: 'start',
  node,
  model: 'qwen3:8b',
  reason: 'resident',
  ...over,
})

export const HOLD: Decision = { kind: 'hold', reason: 'held' }

export const arrived = (of: Job = job()): FactOf<'request.arrived'> => ({
  type: 'request.arrived',
  at: of.arrivedAt,
  job: of,
})

export const placed = (
  atMs: number,
  verdicts: FactOf<'request.placed'>['verdicts'],
  decision: Decision,
  over: Partial<FactOf<'request.placed'>> = {},
): FactOf<'request.placed'> => ({
  type: 'request.placed',
  at: ARRIVAL + atMs,
  request: 'req_1',
  cause: 'arrival',
  attempt: 1,
  policy: 'residency',
  verdicts,
  decision,
  tookMs: 0.04,
  ...over,
})

export const phase = (
  atMs: number,
  name: FactOf<'request.phase'>['phase'],
  over: Partial<FactOf<'request.phase'>> = {},
): FactOf<'request.phase'> => ({ type: 'request.phase', at: ARRIVAL + atMs, request: 'req_1', phase: name, ...over })

export const failed = (
  atMs: number,
  node: string,
  over: Partial<FactOf<'attempt.failed'>> = {},
): FactOf<'attempt.failed'> => ({
  type: 'attempt.failed',
  at: ARRIVAL + atMs,
  request: 'req_1',
  node,
  model: 'qwen3:8b',
  attempt: 1,
  failure: { class: 'connect', message: 'connection refused', bytes: 0, elapsedMs: 12 },
  retried: true,
  ...over,
})

export const outcome = (over: Partial<Outcome> = {}): Outcome => ({
  end: 'completed',
  status: 200,
  node: 'rig',
  model: 'qwen3:8b',
  phase: 'generating',
  tokensIn: 8_190,
  tokensOut: 212,
  ttftMs: 4_020,
  tokensPerSecond: 38.04,
  bytes: 20_480,
  retries: 0,
  ...over,
})

export const settled = (atMs: number, over: Partial<FactOf<'request.settled'>> = {}): FactOf<'request.settled'> => ({
  type: 'request.settled',
  at: ARRIVAL + atMs,
  request: 'req_1',
  dialect: 'openai',
  asked: 'qwen3:8b',
  priority: 'normal',
  residency: 'resident',
  arrivedAt: ARRIVAL,
  outcome: outcome(),
  ...over,
})

/** The facts of an uneventful request that ran on `rig`. */
export const ordinary = (of: Job = job()): Fact[] =>
  [
    arrived(of),
    phase(0, 'placing'),
    placed(0.4, [ranked('rig', [0, 0, 0]), ranked('box', [0, 0, 1]), tooBig('pi')], start('rig')),
    phase(0.4, 'prefill', { node: 'rig' }),
    phase(4_020, 'generating', { node: 'rig' }),
    settled(9_800),
  ].map((fact) => ('request' in fact ? { ...fact, request: of.id } : fact))

export const record = (over: Partial<DecisionRecord> = {}): DecisionRecord => ({
  id: 'req_1',
  at: ARRIVAL,
  asked: {
    model: 'qwen3:8b',
    dialect: 'openai',
    operation: 'openai.chat',
    stream: true,
    priority: 'normal',
    tags: [],
    promptTokens: { value: 8_190, basis: 'estimated' },
  },
  models: ['qwen3:8b'],
  rounds: [],
  phases: [],
  failures: [],
  version: '0.1.0',
  ...over,
})

export const round = (
  nodes: DecisionRecord['rounds'][number]['nodes'],
  decision: Decision,
  over: Partial<DecisionRecord['rounds'][number]> = {},
): DecisionRecord['rounds'][number] => ({ atMs: 0.4, cause: 'arrival', policy: 'residency', nodes, decision, ...over })

export const overview = (over: Partial<Overview> = {}): Overview => ({
  instance: 'i1',
  version: '0.1.0',
  startedAt: ARRIVAL,
  draining: false,
  inFlight: 0,
  waiting: 0,
  held: 0,
  nodes: 1,
  healthyNodes: 1,
  models: 1,
  requests: {},
  ...over,
})

export const nodeView = (name: string, over: Partial<NodeView> = {}): NodeView => ({
  name,
  kind: 'ollama',
  url: 'http://127.0.0.1:11434',
  origin: 'configured',
  tags: [],
  health: 'online',
  admission: 'open',
  breaker: 'closed',
  state: 'online',
  inFlight: 0,
  models: [],
  resident: [],
  queues: [],
  ...over,
})
