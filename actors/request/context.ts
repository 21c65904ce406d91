import type { Config } from '../../src/domain/config'
import type { RouterError } from '../../src/domain/errors'
import type { Failure, PhaseName, TerminalStatus } from '../../src/domain/facts'
import type { Job } from '../../src/domain/job'
import type { NodeDescription } from '../../src/domain/node'
import type { Journal } from '../../src/ports/journal'
import type { Flow, NodeGateway, Reply, ReplySummary } from '../../src/ports/node-gateway'

/** What a request needs from the world; bound once in the wiring. */
export interface RequestPorts {
  readonly gateway: Pick<NodeGateway, 'forward' | 'cut'>
  readonly journal: Journal
  readonly node: (name: string) => NodeDescription | undefined
  /** The answer begins: hands it to whoever submitted the job. */
  readonly open: (request: string, reply: Reply) => void
  /** The request ends without an answer of a node. */
  readonly refuse: (request: string, error: RouterError) => void
  readonly now: () => number
  readonly config: Pick<Config, 'limits' | 'policy' | 'health'>
}

/** Where a request stands. `reply` is set once the client has an answer's first bytes. */
export interface RequestContext {
  readonly job: Job
  readonly ports: RequestPorts
  attempt: number
  excluded: string[]
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
      }
    | undefined
  bound: { readonly node: string; readonly model: string } | undefined
  flow: Flow | undefined
  startedAt: number
  firstByteMs: number | undefined
  stalled: boolean
  lastFailure: Failure | undefined
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
