import type { RouterError } from '../domain/errors'
import type { DialectName, Job, Priority } from '../domain/job'
import type { Exchange } from './exchange'

/** What the HTTP layer found out before the dialect looks at the body. */
export interface Arrival {
  readonly id: string
  readonly at: number
  readonly path: string
  readonly headers: Headers
  readonly body: Uint8Array
  /** Leaves Claude Code's billing header in the prompt; default: it is taken out. */
  readonly keepBillingHeader?: boolean
  /** Repairs broken arguments of calls in the answer, where the tool's schema accepts the result; default: they are passed on. */
  readonly repairToolCalls?: boolean
  /** What the caller may have of a priority that its body asks for; absent: all. */
  readonly cap?: (asked: Priority) => Priority
  /** From the key and the X-Fleet-* headers. */
  readonly context: Pick<Job, 'priority' | 'tags'> &
    Partial<Pick<Job, 'pin' | 'fallback' | 'session' | 'key' | 'policy' | 'clientRequestId' | 'deadlineAt'>>
}

export interface InferenceRoute {
  readonly method: 'POST'
  readonly path: string
  /** Throws `RouterError('invalid_request', …, {param})`. */
  decode(arrival: Arrival): Exchange
}

/** One client protocol. Adding one is one file and one line in `index.ts`. */
export interface Dialect {
  readonly name: DialectName
  readonly inference: readonly InferenceRoute[]
  /** A whole error answer, `Retry-After` and `x-should-retry` included. */
  refuse(error: RouterError): Response
}
