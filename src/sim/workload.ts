import type { Job } from '../domain/job'
import type { NodeKind } from '../domain/node'
import type { Random } from '../ports/random'
import type { SimNodeSpec } from './sim-node'

/** One request: when it comes and how long its client has patience. Times in ms after the start. */
export interface Arrival {
  readonly at: number
  readonly job: Job
  /** The client leaves after so long, wherever its request stands. */
  readonly leavesAfterMs?: number
  /** It leaves by closing the answer that it reads, instead of the connection. */
  readonly hangsUp: boolean
}

/** Something that befalls a node. */
export interface Trouble {
  readonly at: number
  readonly node: string
  readonly what: 'crash' | 'freeze' | 'pause' | 'drain' | 'remove'
  readonly forMs: number
}

export interface Workload {
  readonly nodes: readonly SimNodeSpec[]
  readonly arrivals: readonly Arrival[]
  readonly troubles: readonly Trouble[]
}

const MODELS = [
  { name: 'small', sizeGb: 4 },
  { name: 'embed', sizeGb: 1 },
  { name: 'medium', sizeGb: 10 },
  { name: 'large', sizeGb: 22 },
]
const KINDS: readonly NodeKind[] = ['llamacpp', 'ollama', 'llamacpp', 'openai']
const MEMORY_GB = [12, 16, 24, 48]
const TROUBLES: readonly Trouble['what'][] = ['crash', 'freeze', 'pause', 'drain', 'remove']
/** About what one request takes. */
const MEAN_MS = 2_500
/** The mean time between troubles of one node. */
const CALM_MS = 120_000

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T
const chance = (random: Random, likely: number): boolean => random.next() < likely
const exponential = (random: Random, mean: number): number => -Math.log(1 - random.next()) * mean
const within = (random: Random, least: number, most: number): number =>
  Math.round(least + random.next() * (most - least))

const nodeSpec = (random: Random, index: number): SimNodeSpec => {
  const kind = pick(random, KINDS)
  const memoryGb = pick(random, MEMORY_GB)
  const fitting = MODELS.filter(({ sizeGb }) => sizeGb <= memoryGb)
  // An OpenAI-compatible server has one model, which is always there.
  const models = kind === 'openai' ? [pick(random, fitting)] : fitting.filter(() => chance(random, 0.8))
  const speed = 0.5 + random.next() * 2
  return {
    name: `node-${index + 1}`,
    kind,
    memoryGb,
    slots: kind === 'ollama' ? 1 : within(random, 1, 4),
    models: models.length === 0 ? fitting.slice(0, 1) : models,
    loadGbPerSecond: 0.5 + random.next() * 3,
    prefillMs: [20, 1_500 * speed],
    decodeMs: [100, 6_000 * speed],
    failureChance: chance(random, 0.3) ? 0.08 : 0.005,
  }
}

const jobOf = (random: Random, index: number, arrivedAt: number, nodes: readonly SimNodeSpec[]): Job => {
  const known = nodes.flatMap(({ models }) => models.map(({ name }) => name))
  const asked = chance(random, 0.01) ? 'unheard-of' : pick(random, known)
  const models = chance(random, 0.1) ? [asked, pick(random, known)] : [asked]
  return {
    id: `req_${String(index).padStart(6, '0')}`,
    dialect: 'openai',
    operation: 'openai.chat',
    asked,
    models: [...new Set(models)],
    stream: chance(random, 0.7),
    needs: ['chat'],
    priority: chance(random, 0.1) ? 'critical' : chance(random, 0.2) ? 'batch' : 'normal',
    promptTokens: { value: within(random, 10, 4_000), basis: 'estimated' },
    tags: [],
    arrivedAt,
    ...(chance(random, 0.05) ? { pin: pick(random, nodes).name } : {}),
    ...(chance(random, 0.1) ? { deadlineAt: arrivedAt + within(random, 500, 60_000) } : {}),
  }
}

const troublesOf = (random: Random, nodes: readonly SimNodeSpec[], lastMs: number): Trouble[] =>
  nodes.flatMap(({ name }) => {
    const troubles: Trouble[] = []
    let at = exponential(random, CALM_MS)
    while (at < lastMs) {
      const forMs = within(random, 200, chance(random, 0.2) ? 60_000 : 8_000)
      troubles.push({ at, node: name, what: pick(random, TROUBLES), forMs })
      at += forMs + exponential(random, CALM_MS)
    }
    return troubles
  })

/** Unlike machines and unlike clients, in bursts and lulls; the same from the same random numbers. */
export const createWorkload = (
  random: Random,
  { requests, nodes, startsAt }: { readonly requests: number; readonly nodes: number; readonly startsAt: number },
): Workload => {
  const specs = Array.from({ length: nodes }, (_, index) => nodeSpec(random, index))
  const slots = specs.reduce((sum, spec) => sum + spec.slots, 0)
  /** From more than the machines can do to an easy day. */
  const ease = 0.7 + random.next() * 3
  const arrivals: Arrival[] = []
  let at = 500
  while (arrivals.length < requests) {
    const burst = chance(random, 0.2) ? within(random, 2, 3 * slots) : 1
    for (let i = 0; i < burst && arrivals.length < requests; i++) {
      arrivals.push({
        at,
        job: jobOf(random, arrivals.length + 1, startsAt + at, specs),
        ...(chance(random, 0.12) ? { leavesAfterMs: within(random, 0, 10_000) } : {}),
        hangsUp: chance(random, 0.5),
      })
    }
    at += Math.round(exponential(random, (burst * MEAN_MS) / slots) * ease)
  }
  return { nodes: specs, arrivals, troubles: troublesOf(random, specs, at) }
}
