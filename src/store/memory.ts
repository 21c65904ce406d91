import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import { type LearnedPair, type LearnedRate, MAX_PAIRS } from '../learning/service-times'
import type { Clock } from '../ports/clock'
import { MAX_LIST, type Store } from './store'

export interface MemoryStoreOptions {
  /** Read at each use. */
  readonly keepTracesMs: number
  readonly clock: Clock
  /** Records kept at most, whatever their age. */
  readonly maxRecords?: number
}

/** The store of a router that keeps nothing on disk. */
export const openMemoryStore = (options: MemoryStoreOptions): Store => {
  const { clock, maxRecords = 10_000 } = options
  /** Oldest save first. */
  const records = new Map<string, DecisionRecord>()
  const pairs = new Map<string, LearnedPair>()
  const rates = new Map<string, LearnedRate>()

  const isKept = (record: DecisionRecord): boolean => record.at >= clock.now() - options.keepTracesMs

  const prune = (): void => {
    for (const [id, record] of records) {
      if (records.size <= maxRecords && isKept(record)) break
      records.delete(id)
    }
  }

  const newestFirst = (): DecisionRecord[] => [...records.values()].filter(isKept).sort((a, b) => b.at - a.at)

  return {
    save: (record) => {
      records.delete(record.id)
      records.set(record.id, record)
      prune()
    },
    get: (id) => {
      const record = records.get(id)
      return record && isKept(record) ? record : undefined
    },
    last: () => newestFirst()[0],
    list: (query) =>
      newestFirst()
        .filter((record) => recordMatches(record, query))
        .slice(0, Math.min(query.limit, MAX_LIST)),
    learned: {
      load: () => ({ pairs: [...pairs.values()].slice(-MAX_PAIRS), rates: [...rates.values()].slice(-MAX_PAIRS) }),
      save: (changed) => {
        for (const pair of changed.pairs) latest(pairs, `${pair.node}\0${pair.model}`, pair)
        for (const rate of changed.rates) latest(rates, rate.node, rate)
      },
    },
    trouble: () => ({ lost: 0 }),
    close: () => undefined,
  }
}

const latest = <T>(map: Map<string, T>, key: string, value: T): void => {
  map.delete(key)
  map.set(key, value)
}
