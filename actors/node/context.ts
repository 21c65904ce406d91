import type { Config } from '../../src/domain/config'
import type { Failure } from '../../src/domain/facts'
import type { Breaker, Health, NodeDescription } from '../../src/domain/node'
import { countsAgainstNode, isOfLaneOnly, nextRetryMs } from '../../src/placement/breaker'
import type { Journal } from '../../src/ports/journal'
import type { NodeEvent } from '../protocol'
import type { Roster } from '../roster'
import type { PollerPorts } from '../poller.machine'
import type { RuntimePorts } from '../runtime.machine'

export interface NodeInput {
  readonly node: NodeDescription
  readonly roster: Roster
  readonly journal: Journal
  readonly runtime: RuntimePorts
  readonly poller: PollerPorts
  readonly now: () => number
  /** ms since the epoch of the last byte of any answer from the node, or 0. */
  readonly lastProgressAt: (node: string) => number
  readonly health: Config['health']
}

export interface NodeContext extends NodeInput {
  readonly failedPolls: number
  /** When its runtime was restarted lately, in ms since the epoch. */
  readonly runtimeRestarts: readonly number[]
  readonly healthReason: string | undefined
  /** Requests that stand without a first byte for too long. */
  readonly stalled: ReadonlySet<string>
  /** What counted against it lately, for the breaker. */
  readonly failures: readonly { readonly at: number; readonly message: string }[]
  readonly breakerReason: string | undefined
  readonly breakerSince: number | undefined
  readonly breakerRetryAt: number | undefined
  readonly retryMs: number
  /** It stood still: suspect until then, and after that one request without a first byte is enough. */
  readonly probation: { readonly until: number; readonly waitMs: number } | undefined
}

export type Heard = NodeEvent

/** Each time that a node stands still again doubles its time as suspect, up to this, in ms. */
const PROBATION_MAX_MS = 600_000
/** A node that refused a request because it is busy stands behind the others for so long, in ms. */
export const OVERLOAD_MS = 1_000
/** Any byte from the node younger than this counts as life when a poll goes unanswered, in ms. */
const PROGRESS_MS = 5_000

export const failureOf = (event: Heard): Failure | undefined =>
  event.type === 'attempt.failed' ? event.failure : undefined

/** The breaker counts it. */
export const counts = (event: Heard): boolean =>
  event.type === 'attempt.failed' &&
  countsAgainstNode(event.failure) &&
  (event.lane === undefined || !isOfLaneOnly(event.failure, event.lane))

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
export const wedgedReason = (count: number): string =>
  `no_progress: ${count} ${count === 1 ? 'request stands' : 'requests stand'} without a first byte`
export const without = (set: ReadonlySet<string>, one: string): ReadonlySet<string> =>
  new Set([...set].filter((other) => other !== one))

/** What of a node's snapshot decides whether good news matter to it. */
export interface NodeStanding {
  readonly value: { readonly health: Health; readonly breaker: Breaker }
  readonly context: Pick<NodeContext, 'probation'>
}

/**
 * `attempt.succeeded` changes something in this state: to be kept in step with the chart. The event is not sent
 * otherwise, since a machine takes longer to ignore one than a request takes on its whole way.
 */
export const awaitsSuccess = ({ value: { health, breaker }, context }: NodeStanding): boolean =>
  health === 'suspect' || breaker === 'half_open' || context.probation !== undefined

/** `poll.succeeded` changes something in this state; likewise. */
export const awaitsPoll = ({ value: { health } }: Pick<NodeStanding, 'value'>): boolean => health !== 'online'

export const initialContext = (input: NodeInput): NodeContext => ({
  ...input,
  failedPolls: 0,
  runtimeRestarts: [],
  healthReason: undefined,
  stalled: new Set(),
  failures: [],
  breakerReason: undefined,
  breakerSince: undefined,
  breakerRetryAt: undefined,
  retryMs: input.health.breakerRetryMs,
  probation: undefined,
})

/** Bytes came from it a moment ago. */
export const isProgressing = ({ now, lastProgressAt, node }: NodeContext): boolean =>
  now() - lastProgressAt(node.name) < PROGRESS_MS

/** With this request so many stand without a first byte that the node itself stands still. */
export const wedges = ({ stalled, probation, health }: NodeContext, request: string): boolean =>
  new Set([...stalled, request]).size >= (probation === undefined ? health.stallRequests : 1)

/** From now on; twice as long as the time before. */
export const nextProbation = ({ now, probation, health }: NodeContext): NodeContext['probation'] => {
  const waitMs = probation === undefined ? health.stallAfterMs : nextRetryMs(probation.waitMs, PROBATION_MAX_MS)
  return { until: now() + waitMs, waitMs }
}

/** The failures without the latest that had these words. */
export const failuresWithout = ({ failures }: NodeContext, message: string): NodeContext['failures'] => {
  const at = failures.findLastIndex((failure) => failure.message === message)
  return failures.filter((_failure, index) => index !== at)
}

/** What the breaker counts, with one more failure and without those that are too old. */
export const failuresWith = ({ now, failures, health }: NodeContext, message: string): NodeContext['failures'] => {
  const at = now()
  return [...failures.filter((failure) => at - failure.at < health.breakerWindowMs), { at, message }]
}
