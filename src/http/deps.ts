import type { Config } from '../domain/config'
import type { DecisionRecord } from '../domain/record'
import type { Clock } from '../ports/clock'
import type { Decisions } from '../ports/decisions'
import type { Fleet } from '../ports/fleet'
import type { Random } from '../ports/random'
import type { Dialect } from '../wire/dialect'
import type { Exchange } from '../wire/exchange'

/** What the HTTP layer needs. Everything that it tells comes from these; it keeps no state of requests itself. */
export interface ServerDeps {
  readonly config: Pick<Config, 'server' | 'auth' | 'discovery' | 'metrics'>
  readonly fleet: Fleet
  readonly decisions: Decisions
  readonly dialects: readonly Dialect[]
  /** Shared with the node gateway: the bytes of the calls that wait for an answer, by request id. */
  readonly exchanges: Map<string, Exchange>
  /** The `X-Fleet-*` headers and `Server-Timing` of an answer; the signals only when `explain`. */
  readonly replyHeaders: (
    record: DecisionRecord,
    options: { readonly explain: boolean },
  ) => Readonly<Record<string, string>>
  readonly metrics?: { expose(): Promise<string>; readonly contentType: string }
  readonly random: Random
  readonly clock: Clock
  /** Our own id, as other routers see it. */
  readonly instance: string
  readonly version: string
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void }
}
