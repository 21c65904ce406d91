import { seededRandom } from '../../../src/sim/seeded-random'
import type { Fault } from '../../../src/sim/fake/faults'
import type { FakeKind } from '../../../src/sim/fake/options'
import { type FakeSpec, fastModel, startFakes } from '../fakes'
import { sumBy } from '../exposition'
import { type Bench, type Setup, withRouter } from '../router'
import { type Answered, defectOf, oddOf } from '../protocol-answers'
import { startGarbler } from './garbler'
import { mutate } from './mutate'
import type { Protocol } from '../protocols'

/** At once, so that kept connections, queues and retries are all in use. */
const AT_ONCE = 32
/** Of one request, in ms: what takes longer hangs. */
const HANG_MS = 10_000
/** More would hide the first. */
const MOST_SHOWN = 5
const SHOWN_BYTES = 400

const model = fastModel('m', {
  capabilities: ['chat', 'completion', 'tools', 'vision', 'thinking', 'embedding'],
  loadMs: 1,
  prefillPerSecond: 10_000_000,
  decodePerSecond: 1_000_000,
})

const engine = (kind: FakeKind): FakeSpec => ({
  kind,
  models: [model],
  resident: ['m'],
  slots: 16,
  answerTokens: 3,
  keepLog: false,
})

/**
 * What goes wrong at every node, else the sound ones would get all the work: each for some requests of a hundred. Of two
 * faults of one type at a node only the first counts.
 */
const COMMON: readonly Fault[] = [
  { type: 'garbage', chance: 0.04 },
  { type: 'reset', chance: 0.04 },
  { type: 'gzip_label', chance: 0.02 },
  { type: 'oversized_header', bytes: 100_000, chance: 0.01 },
]
const htmlStatus: Fault = { type: 'status', status: 500, body: 'html', chance: 0.04 }
const jsonStatus: Fault = { type: 'status', status: 503, chance: 0.04 }

const NODES: readonly (readonly [FakeKind, readonly Fault[]])[] = [
  ['ollama', [htmlStatus, { type: 'cut', afterChunks: 1, chance: 0.04 }]],
  ['llamacpp', [jsonStatus, { type: 'body_error', shape: 'event', afterChunks: 1, chance: 0.04 }]],
  ['ollama', [jsonStatus, { type: 'body_error', shape: 'json', chance: 0.04 }]],
  [
    'openai',
    [
      htmlStatus,
      { type: 'body_error', shape: 'html', chance: 0.04 },
      { type: 'truncate', afterChunks: 1, chance: 0.04 },
    ],
  ],
]

const SETUP: Setup = {
  log: { level: 'silent' },
  policy: { holdTimeoutMs: 1_000 },
  // Nodes that fail this often would soon be left out.
  health: { breakerFailures: 1_000_000_000, pollEveryMs: 500 },
  limits: { firstTokenTimeoutMs: 5_000, streamIdleTimeoutMs: 5_000 },
  describe: () => ({ maxConcurrency: 16 }),
}

/** Body `index` of a run, the same whenever the seed is. */
export const bodyAt = ({ bodies }: Protocol, seed: number, index: number): Uint8Array => {
  const random = seededRandom(seed + index)
  return mutate(bodies[index % bodies.length] as object, random)
}

export interface Found {
  readonly index: number
  readonly why: string
  readonly sent: string
  readonly got: string
}

const cut = (text: string): string => text.slice(0, SHOWN_BYTES)

type Check = (protocol: Protocol, answer: Answered) => string | undefined

const tryOne = async (
  bench: Bench,
  protocol: Protocol,
  body: Uint8Array,
  check: Check,
): Promise<Omit<Found, 'index'> | undefined> => {
  const sent = cut(Buffer.from(body).toString('latin1'))
  try {
    const answer = await fetch(`${bench.url}${protocol.path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(HANG_MS),
    })
    const text = await answer.text()
    const why = check(protocol, { status: answer.status, headers: answer.headers, body: text })
    return why === undefined ? undefined : { why, sent, got: cut(`${answer.status} ${text}`) }
  } catch (error) {
    return { why: String(error), sent, got: '' }
  }
}

export interface Fuzzed {
  /** Answers that no client of the protocol can take, the first ones. */
  readonly found: readonly Found[]
  /** How the requests ended that became jobs, by end. */
  readonly ends: Readonly<Record<string, number>>
  /** What is left in the metrics of work after all is over. */
  readonly left: Readonly<Record<string, number>>
  readonly internal: number
}

/** Sends `count` bodies to one protocol, counts how they end, and looks at what is left. */
const send = async (
  bench: Bench,
  {
    protocol,
    count,
    check,
    body,
  }: { protocol: Protocol; count: number; check: Check; body: (at: number) => Uint8Array },
): Promise<Fuzzed> => {
  const found: Found[] = []
  const ends: Record<string, number> = {}
  let internal = 0
  let next = 0
  const stop = bench.router.listenTo((fact) => {
    if (fact.type !== 'request.settled') return
    ends[fact.outcome.end] = (ends[fact.outcome.end] ?? 0) + 1
    if (fact.outcome.code === 'internal') internal += 1
  })
  const client = async (): Promise<void> => {
    while (next < count && found.length < MOST_SHOWN) {
      const index = next++
      const odd = await tryOne(bench, protocol, body(index), check)
      if (odd) found.push({ index, ...odd })
    }
  }

  await Promise.all(Array.from({ length: AT_ONCE }, client))
  await bench.idle()
  stop()

  const page = await bench.metrics()
  const left = { ...sumBy(page, 'fleet_inflight', 'node'), ...sumBy(page, 'fleet_waiting', 'model') }
  return { found, ends, left, internal }
}

/** Mutated bodies through a router in front of nodes of which some misbehave. */
export const fuzzBodies = (protocol: Protocol, count: number, seed: number): Promise<Fuzzed> =>
  withRouter(
    NODES.map(([kind]) => engine(kind)),
    SETUP,
    (bench) => {
      for (const [at, [, faults]] of NODES.entries()) {
        for (const fault of [...COMMON, ...faults]) bench.fakes[at]?.faults.add(fault)
      }
      return send(bench, { protocol, count, check: oddOf, body: (at) => bodyAt(protocol, seed, at) })
    },
  )

const GARBLED = ['ollama', 'llamacpp', 'openai'] as const satisfies readonly FakeKind[]

/** Valid bodies through a router in front of nodes whose answers are mutated. */
export const fuzzAnswers = async (protocol: Protocol, count: number, seed: number): Promise<Fuzzed> => {
  const random = seededRandom(seed)
  const fakes = await startFakes(GARBLED.map(engine))
  const garblers = fakes.map((fake) => startGarbler(fake, random))
  const check: Check = protocol.isOurs ? oddOf : (_, answer) => defectOf(answer)
  const texts = protocol.bodies.map((body) => Buffer.from(JSON.stringify(body)))
  try {
    return await withRouter(
      GARBLED.map(engine),
      { ...SETUP, describe: (at) => ({ maxConcurrency: 16, url: garblers[at]?.url ?? '' }) },
      (bench) => send(bench, { protocol, count, check, body: (at) => texts[at % texts.length] as Uint8Array }),
    )
  } finally {
    for (const garbler of garblers) garbler.stop()
    await Promise.all(fakes.map((fake) => fake.stop()))
  }
}
