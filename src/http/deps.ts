import type { Config } from '../domain/config'
import type { DecisionRecord } from '../domain/record'
import type { Clock } from '../ports/clock'
import type { Decisions } from '../ports/decisions'
import type { Fleet } from '../ports/fleet'
import type { Journal } from '../ports/journal'
import type { Random } from '../ports/random'
import type { UsageBook } from '../ports/usage'
import type { VideoStore } from '../ports/videos'
import type { Dialect } from '../wire/dialect'
import type { Exchanges } from '../wire/exchange'
import type { CountOnNode } from '../wire/token-count'
import type { Buffered } from './buffered'
import type { Manage } from './manage'

/** What came of reading the configuration again; the problems are those of `fleet check`. */
export type Reloaded =
  | {
      readonly outcome: 'applied'
      readonly changes: readonly { readonly key: string }[]
      readonly waiting: readonly string[]
    }
  | { readonly outcome: 'rejected'; readonly problems: readonly { readonly message: string; readonly line?: number }[] }

/** What the HTTP layer needs. Everything that it tells comes from these; it keeps no state of requests itself. */
export interface ServerDeps {
  /** Read at each request, since it may be replaced while the router runs. */
  readonly config: Pick<Config, 'server' | 'auth' | 'discovery' | 'limits' | 'metrics' | 'priorities'>
  readonly fleet: Fleet
  readonly decisions: Decisions
  /** What each key used. */
  readonly usage: UsageBook
  /** Which node has which video. */
  readonly videos: VideoStore
  readonly dialects: readonly Dialect[]
  /** Shared with the node gateway: the bytes of the calls that wait for an answer, by request id. */
  readonly exchanges: Exchanges
  /** How much of all bodies is in memory. */
  readonly buffered: Buffered
  readonly journal: Journal
  /** Sends what is for one node and runs no model. */
  readonly manage: Manage
  /** The `X-Fleet-*` headers and `Server-Timing` of an answer; the signals only when `explain`. */
  readonly replyHeaders: (
    record: DecisionRecord,
    options: { readonly explain: boolean },
  ) => Readonly<Record<string, string>>
  readonly metrics?: { expose(): Promise<string>; readonly contentType: string }
  /** Measured bytes of text in a token of the model, by any of its names. */
  readonly bytesPerToken?: (model: string) => number | undefined
  /** Counts tokens exactly, on a node; absent: they are estimated. */
  readonly countTokens?: CountOnNode
  readonly random: Random
  readonly clock: Clock
  /** Reads the configuration again; absent when it came from nowhere that could be read. */
  readonly reload?: () => Reloaded
  /** Our own id, as other routers see it. */
  readonly instance: string
  readonly version: string
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void }
}
