import { RouterError } from '../domain/errors'
import type { Args } from './args'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'

type Counts = Readonly<Record<string, number>>

/** What is asked of a simulated run. */
export interface SimulationInput {
  readonly seed: number
  readonly requests: number
  readonly nodes: number
  readonly policy?: string
}

/** What came of it, as far as it is printed. Times in ms of virtual time. */
export interface SimulationReport extends SimulationInput {
  readonly virtualMs: number
  readonly events: number
  readonly placements: Counts
  readonly outcomes: Counts
  readonly waitMs: { readonly p50: number; readonly p95: number }
  readonly loads: { readonly finished: number; readonly failed: number }
  readonly failures: Counts
  /** Invariants that did not hold, oldest first. */
  readonly broken: readonly string[]
}

/** Runs the core in virtual time; rejects with `invalid_request` when the input makes no sense. */
export type Simulate = (input: SimulationInput) => Promise<SimulationReport>

const DEFAULTS = { seed: 1, requests: 1_000, nodes: 4 }
const MOST_NODES = 1_000
const MOST_REQUESTS = 1_000_000

const wholeNumber = (
  options: Args['options'],
  name: keyof typeof DEFAULTS,
  least: number,
  most: number,
): number | string => {
  const given = options[name]
  if (given === undefined) return DEFAULTS[name]
  const value = Number(given)
  return typeof given === 'string' && /^\d+$/.test(given) && value >= least && value <= most
    ? value
    : `option '--${name}' needs a whole number from ${least} to ${most}`
}

const listed = (counts: Counts): string =>
  Object.entries(counts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(', ') || 'none'

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** The command that repeats a run. */
export const repeatedBy = ({ seed, requests, nodes, policy }: SimulationInput): string =>
  `fleet simulate --seed ${seed} --requests ${requests} --nodes ${nodes}${policy === undefined ? '' : ` --policy ${policy}`}`

const summaryOf = (report: SimulationReport): string => {
  const { requests, nodes, virtualMs, events, placements, outcomes, waitMs, loads, failures, seed } = report
  return `${requests} requests on ${nodes} simulated nodes in ${seconds(virtualMs)} of virtual time (seed ${seed}, ${events} events)
  placements  ${listed(placements)}
  ended       ${listed(outcomes)}
  wait        p50 ${seconds(waitMs.p50)}, p95 ${seconds(waitMs.p95)}
  loads       ${loads.finished} finished, ${loads.failed} failed
  failures    ${listed(failures)}
`
}

/** `fleet simulate`: a made-up fleet and workload in virtual time. Exits 7 when an invariant was broken. */
export const simulate = async (
  { options }: Args,
  { out, err }: Pick<Io, 'out' | 'err'>,
  run: Simulate,
): Promise<ExitCode> => {
  const seed = wholeNumber(options, 'seed', 0, 2 ** 32 - 1)
  const requests = wholeNumber(options, 'requests', 1, MOST_REQUESTS)
  const nodes = wholeNumber(options, 'nodes', 1, MOST_NODES)
  for (const value of [seed, requests, nodes]) {
    if (typeof value !== 'string') continue
    err(`${value}\n`)
    return exitCode.wrongUsage
  }
  const input = {
    seed: Number(seed),
    requests: Number(requests),
    nodes: Number(nodes),
    ...(typeof options.policy === 'string' ? { policy: options.policy } : {}),
  }
  let report: SimulationReport
  try {
    report = await run(input)
  } catch (error) {
    if (!(error instanceof RouterError && error.code === 'invalid_request')) throw error
    err(`${error.message}\n`)
    return exitCode.wrongUsage
  }
  out(options.json ? `${JSON.stringify(report, null, 2)}\n` : summaryOf(report))
  if (report.broken.length === 0) return exitCode.done
  for (const breach of report.broken) err(`broken: ${breach}\n`)
  err(`repeat it with: ${repeatedBy(input)}\n`)
  return exitCode.problemsFound
}
