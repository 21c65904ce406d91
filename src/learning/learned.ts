import type { LearnedParallelism } from './parallelism'
import type { WindowSummary } from './percentile'
import type { DecodeSpeeds, Speed } from './speed'
import type { TokenRatio } from './token-ratio'

/** Pairs kept, and of everything else too; the least recently measured one goes first. */
export const MAX_PAIRS = 5_000

/** What is known of one node:model. Means in ms; absent when never measured. */
export interface LearnedPair {
  readonly node: string
  /** As `modelKey` writes it. */
  readonly model: string
  readonly serviceMs?: number
  readonly services: number
  readonly loadMs?: number
  readonly loads: number
  /** The latest service times, in ms. */
  readonly window?: WindowSummary
  readonly prefill?: Speed
  readonly decode?: DecodeSpeeds
  readonly parallelism?: LearnedParallelism
}

/** How fast a node brings models into memory, in GB/s, over all its models. */
export interface LearnedRate {
  readonly node: string
  readonly gbPerSecond: number
  readonly loads: number
}

/** Moving averages over all models of a node. */
export interface LearnedMeans {
  readonly node: string
  readonly latencyMs: number
  /** Output tokens/s. */
  readonly tokensPerSecond?: number
  readonly samples: number
}

/** Aggregates only: their number is bounded by pairs, whatever the number of requests behind them. */
export interface Learned {
  /** Least recently measured first, like the others. */
  readonly pairs: readonly LearnedPair[]
  readonly rates: readonly LearnedRate[]
  readonly means: readonly LearnedMeans[]
  readonly ratios: readonly TokenRatio[]
}

/** Where the aggregates outlive the process. `save` gets what one sample changed and must not block. */
export interface LearnedStore {
  load?(): Partial<Learned>
  save?(changed: Partial<Learned>): void
  /** Nothing that was measured on the node holds any more. */
  forget?(node: string): void
}

interface Entry<T> {
  value: T
  /** Greater than that of all that were set before it. */
  setAt: number
}

/**
 * A map of at most `limit` entries; what was set longest ago goes first. The order stands in the entries: setting one
 * that is there, as every request does, leaves the table alone, and only one too many has to look for the oldest.
 */
export const createLatest = <T>(limit: number) => {
  const entries = new Map<string, Entry<T>>()
  let setAt = 0

  const deleteOldest = (): void => {
    let oldest: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [key, entry] of entries) {
      if (entry.setAt >= least) continue
      least = entry.setAt
      oldest = key
    }
    if (oldest !== undefined) entries.delete(oldest)
  }

  return {
    get: (key: string): T | undefined => entries.get(key)?.value,
    set: (key: string, value: T): T => {
      const entry = entries.get(key)
      setAt += 1
      if (entry === undefined) {
        entries.set(key, { value, setAt })
        if (entries.size > limit) deleteOldest()
      } else {
        entry.value = value
        entry.setAt = setAt
      }
      return value
    },
    deleteWhere: (isGone: (value: T, key: string) => boolean): void => {
      for (const [key, { value }] of entries) if (isGone(value, key)) entries.delete(key)
    },
    /** Set longest ago first. */
    values: (): readonly T[] => [...entries.values()].sort((a, b) => a.setAt - b.setAt).map(({ value }) => value),
    get size() {
      return entries.size
    },
  }
}
