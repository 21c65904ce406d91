import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import { SlotMap } from '../domain/slot-map'
import { createLatest, type LearnedMeans, type LearnedPair, type LearnedRate, MAX_PAIRS } from '../learning/learned'
import type { TokenRatio } from '../learning/token-ratio'
import type { Clock } from '../ports/clock'
import type { KeyUsage } from '../ports/usage'
import type { Closed } from '../ports/admissions'
import type { Lineage } from '../ports/identities'
import type { KeptVideo } from '../ports/videos'
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
  const records = new SlotMap<DecisionRecord>()
  /** Every save in its order, from `oldest` on. The first key of a map is slow to find behind those that were deleted. */
  let saves: (DecisionRecord | undefined)[] = []
  let oldest = 0
  const pairs = createLatest<LearnedPair>(MAX_PAIRS)
  const rates = createLatest<LearnedRate>(MAX_PAIRS)
  const means = createLatest<LearnedMeans>(MAX_PAIRS)
  const ratios = createLatest<TokenRatio>(MAX_PAIRS)
  const identities = new Map<string, Lineage>()
  const admissions = new Map<string, Closed>()

  const usage = new Map<string, KeyUsage>()
  const videos = new Map<string, KeptVideo>()

  const isKept = (record: DecisionRecord): boolean => record.at >= clock.now() - options.keepTracesMs

  const prune = (): void => {
    for (let record = saves[oldest]; record !== undefined; record = saves[oldest]) {
      const isLatest = records.get(record.id) === record
      if (isLatest && records.size <= maxRecords && isKept(record)) break
      if (isLatest) records.delete(record.id)
      saves[oldest] = undefined
      oldest += 1
    }
    if (oldest < maxRecords) return
    saves = saves.slice(oldest)
    oldest = 0
  }

  const newestFirst = (): DecisionRecord[] => [...records.values()].filter(isKept).sort((a, b) => b.at - a.at)

  return {
    save: (record) => {
      records.set(record.id, record)
      saves.push(record)
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
      load: () => ({
        pairs: [...pairs.values()],
        rates: [...rates.values()],
        means: [...means.values()],
        ratios: [...ratios.values()],
      }),
      save: (changed) => {
        for (const pair of changed.pairs ?? []) pairs.set(`${pair.node}\0${pair.model}`, pair)
        for (const rate of changed.rates ?? []) rates.set(rate.node, rate)
        for (const mean of changed.means ?? []) means.set(mean.node, mean)
        for (const ratio of changed.ratios ?? []) ratios.set(ratio.model, ratio)
      },
      forget: (node) => {
        for (const of of [pairs, rates, means]) of.deleteWhere((one: { readonly node: string }) => one.node === node)
      },
    },
    identities: { load: () => [...identities.values()], save: (lineage) => void identities.set(lineage.key, lineage) },
    admissions: {
      load: () => [...admissions.values()],
      save: (closed) => void admissions.set(closed.node, closed),
      forget: (node) => void admissions.delete(node),
    },
    usage: {
      load: () => [...usage.values()],
      save: (row) => void usage.set(`${row.key}\0${row.day}`, row),
    },
    videos: {
      load: () => [...videos.values()],
      save: (video) => void videos.set(video.id, video),
      forget: (id) => void videos.delete(id),
    },
    trouble: () => ({ lost: 0 }),
    close: () => undefined,
  }
}
