import type { Config } from '../../src/domain/config'
import type { RouterError } from '../../src/domain/errors'
import type { Failure, PhaseName, TerminalStatus } from '../../src/domain/facts'
import type { Job } from '../../src/domain/job'
import type { NodeDescription } from '../../src/domain/node'
import type { Unreached } from '../../src/domain/placement'
import type { Journal } from '../../src/ports/journal'
import type { Flow, NodeGateway, Reply, ReplySummary } from '../../src/ports/node-gateway'

/** What a request needs from the world; bound once in the wiring. */
export interface RequestPorts {
  readonly gateway: Pick<NodeGateway, 'forward' | 'cut'>
  readonly journal: Journal
  readonly node: (name: string) => NodeDescription | undefined
  /** An answer that went well changes what is thought of the node. Nearly always false, and then it is not told. */
  readonly awaitsSuccess: (node: string) => boolean
  /** The answer begins: hands it to whoever submitted the job. */
  readonly open: (request: string, reply: Reply) => void
  /** The request ends without an answer of a node. */
  readonly refuse: (request: string, error: RouterError) => void
  readonly now: () => number
  /** Mean service time there in ms, where it was measured. */
  readonly serviceMs: (node: string, model: string) => number | undefined
  readonly config: Pick<Config, 'limits' | 'policy' | 'health'>
}

/** Where a request stands. `reply` is set once the client has an answer's first bytes. */
export interface RequestContext {
  readonly job: Job
  readonly ports: RequestPorts
  attempt: number
  /** Failed attempts that were followed by another one. */
  retries: number
  excluded: string[]
  /** Nodes that it could not reach: each may have it again once it has answered a poll. */
  unreached: Unreached[]
  /** Attempts of which no node has seen anything; `policy.retries` does not count them. */
  unsent: number
  phase: PhaseName
  heldMs: number
  heldSince: number
  /** Node and model of the current attempt, and the queue to be told of its release. */
  place:
    | {
        readonly node: string
        readonly model: string
        readonly queue: string
        readonly residency: 'resident' | 'cold'
        readonly contextTokens?: number
        /** The request itself makes the node load the model, which may take so long, in ms. */
        readonly loadMs?: number
      }
    | undefined
  bound: { readonly node: string; readonly model: string } | undefined
  flow: Flow | undefined
  startedAt: number
  /** Time that attempts which failed kept nodes at work, in ms. */
  engineMs: number
  /** The client was sent its headers while it waited. */
  hasHeaders: boolean
  firstByteMs: number | undefined
  stalled: boolean
  /** The dispatcher broke once while it was deciding on this request. */
  hasBlame: boolean
  /** Queues that broke while it was in them or about to be. */
  queueCrashes: number
  lastFailure: Failure | undefined
  /** Where that was. */
  lastFailedNode: string | undefined
  /** A node that failed it only by a dead idle connection: it may be asked once more, on a fresh one. */
  staleAt: string | undefined
  summary: ReplySummary | undefined
  ending:
    | {
        readonly end: TerminalStatus
        readonly status: number
        readonly code?: string
        readonly message?: string
        readonly error?: RouterError
      }
    | undefined
  bytes: number
}

export type RequestInput = Pick<RequestContext, 'job' | 'ports'>
