import { createHash } from 'node:crypto'
import type { Fact } from '../domain/facts'

type Counts = Record<string, number>

/** What came of a simulated run. Times in ms of virtual time. */
export interface SimulationSummary {
  readonly seed: number
  readonly requests: number
  readonly nodes: number
  readonly virtualMs: number
  /** Deadlines, arrivals and answers that were carried out. */
  readonly events: number
  /** Placements by the answer of the policy. */
  readonly placements: Readonly<Counts>
  /** Requests by how they ended. */
  readonly outcomes: Readonly<Counts>
  /** From arrival until a node was asked, of those that came so far. */
  readonly waitMs: { readonly p50: number; readonly p95: number }
  readonly loads: { readonly finished: number; readonly failed: number }
  /** Attempts that failed at a node, by class. */
  readonly failures: Readonly<Counts>
  /** SHA-256 of all facts in their order: equal runs have equal ones. */
  readonly hash: string
}

const percentile = (sorted: readonly number[], share: number): number =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)

/** Hears the facts of a run and adds them up. */
export const createSummary = () => {
  const placements: Counts = {}
  const outcomes: Counts = {}
  const failures: Counts = {}
  const loads = { finished: 0, failed: 0 }
  const arrivedAt = new Map<string, number>()
  const waits = new Map<string, number>()
  const hash = createHash('sha256')
  let events = 0
  const count = (counts: Counts, name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  return {
    step: () => {
      events += 1
    },
    hear: (fact: Fact): void => {
      hash.update(JSON.stringify(fact))
      switch (fact.type) {
        case 'request.arrived':
          arrivedAt.set(fact.job.id, fact.at)
          break
        case 'request.placed':
          count(placements, fact.decision.kind)
          break
        case 'request.phase':
          if (fact.phase === 'prefill' && !waits.has(fact.request))
            waits.set(fact.request, fact.at - (arrivedAt.get(fact.request) ?? fact.at))
          break
        case 'request.settled':
          count(outcomes, fact.outcome.end)
          break
        case 'attempt.failed':
          count(failures, fact.failure.class)
          break
        case 'load.finished':
          loads.finished += 1
          break
        case 'load.failed':
          loads.failed += 1
          break
        default:
      }
    },
    result: (seed: number, requests: number, nodes: number, virtualMs: number): SimulationSummary => {
      const sorted = [...waits.values()].sort((a, b) => a - b)
      return {
        seed,
        requests,
        nodes,
        virtualMs,
        events,
        placements,
        outcomes,
        waitMs: { p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95) },
        loads,
        failures,
        hash: hash.digest('hex'),
      }
    },
  }
}
