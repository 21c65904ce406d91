import { modelKey } from '../domain/job'
import type { NodeMeans, Samples, ServiceEstimate } from '../ports/samples'
import { ema } from './ema'
import { createWindow, type Window } from './percentile'

/** Pairs kept; the least recently measured one goes first. */
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
}

/** How fast a node brings models into memory, in GB/s, over all its models. */
export interface LearnedRate {
  readonly node: string
  readonly gbPerSecond: number
  readonly loads: number
}

/** Aggregates only: their number is bounded by pairs, whatever the number of requests behind them. */
export interface Learned {
  /** Least recently measured first. */
  readonly pairs: readonly LearnedPair[]
  readonly rates: readonly LearnedRate[]
}

/** Where the aggregates outlive the process. `save` gets what one sample changed and must not block. */
export interface LearnedStore {
  load?(): Learned
  save?(changed: Learned): void
}

/** Moving averages of service and load times per node:model, in memory. Values that are not finite or negative are ignored. */
export const createSamples = (store: LearnedStore = {}): Samples & { size(): number } => {
  const pairs = new Map<string, LearnedPair>()
  const rates = new Map<string, LearnedRate>()
  const windows = new Map<string, Window>()
  const means = new Map<string, NodeMeans>()

  const windowOf = (key: string): Window => {
    const window = windows.get(key) ?? createWindow()
    windows.delete(key)
    windows.set(key, window)
    if (windows.size > MAX_PAIRS) dropOldest(windows)
    return window
  }

  const meanOf = (node: string, durationMs: number, firstByteMs: number, tokensOut: number | undefined): void => {
    const before = means.get(node)
    const seconds = (durationMs - firstByteMs) / 1000
    const rate = tokensOut === undefined || tokensOut < 2 || seconds <= 0 ? undefined : tokensOut / seconds
    const tokensPerSecond = rate === undefined ? before?.tokensPerSecond : ema(before?.tokensPerSecond, rate)
    means.set(node, {
      latencyMs: ema(before?.latencyMs, durationMs),
      ...(tokensPerSecond === undefined ? {} : { tokensPerSecond }),
    })
  }

  const keep = (pair: LearnedPair): void => {
    const key = pairKey(pair.node, pair.model)
    pairs.delete(key)
    pairs.set(key, pair)
    if (pairs.size > MAX_PAIRS) dropOldest(pairs)
  }

  const keepRate = (rate: LearnedRate): void => {
    rates.delete(rate.node)
    rates.set(rate.node, rate)
    if (rates.size > MAX_PAIRS) dropOldest(rates)
  }

  const known = store.load?.()
  known?.pairs.forEach(keep)
  known?.rates.forEach(keepRate)

  const pairOf = (node: string, model: string): LearnedPair =>
    pairs.get(pairKey(node, model)) ?? { node, model: modelKey(model), services: 0, loads: 0 }

  return {
    addService({ node, model, durationMs, firstByteMs, tokensOut }) {
      if (!isDuration(durationMs)) return
      windowOf(pairKey(node, model)).add(durationMs)
      meanOf(node, durationMs, firstByteMs, tokensOut)
      const pair = pairOf(node, model)
      const next = { ...pair, serviceMs: ema(pair.serviceMs, durationMs), services: pair.services + 1 }
      keep(next)
      store.save?.({ pairs: [next], rates: [] })
    },

    addLoad(node, model, tookMs, sizeGb) {
      if (!isDuration(tookMs)) return
      const pair = pairOf(node, model)
      const next = { ...pair, loadMs: ema(pair.loadMs, tookMs), loads: pair.loads + 1 }
      keep(next)
      const rate = nextRate(rates.get(node), node, tookMs, sizeGb)
      if (rate) keepRate(rate)
      store.save?.({ pairs: [next], rates: rate ? [rate] : [] })
    },

    service(node, model) {
      const pair = pairs.get(pairKey(node, model))
      return estimate(pair?.serviceMs, pair?.services)
    },

    p75: (node, model) => windows.get(pairKey(node, model))?.p75(),
    nodeMeans: (node) => means.get(node),

    loadMs(node, model, sizeGb) {
      const pair = pairs.get(pairKey(node, model))
      const measured = estimate(pair?.loadMs, pair?.loads)
      if (measured || sizeGb === undefined) return measured
      const rate = rates.get(node)
      return rate && { meanMs: (sizeGb / rate.gbPerSecond) * 1000, samples: rate.loads }
    },

    size: () => pairs.size,
  }
}

const nextRate = (
  rate: LearnedRate | undefined,
  node: string,
  tookMs: number,
  sizeGb: number | undefined,
): LearnedRate | undefined => {
  if (sizeGb === undefined || !(sizeGb > 0) || tookMs === 0) return undefined
  return { node, gbPerSecond: ema(rate?.gbPerSecond, sizeGb / (tookMs / 1000)), loads: (rate?.loads ?? 0) + 1 }
}

const estimate = (meanMs: number | undefined, samples = 0): ServiceEstimate | undefined =>
  meanMs === undefined ? undefined : { meanMs, samples }

const isDuration = (ms: number): boolean => Number.isFinite(ms) && ms >= 0

/** NUL stands in no node or model name. */
const pairKey = (node: string, model: string): string => `${node}\0${modelKey(model)}`

const dropOldest = (map: Map<string, unknown>): void => {
  const oldest = map.keys().next()
  if (!oldest.done) map.delete(oldest.value)
}
