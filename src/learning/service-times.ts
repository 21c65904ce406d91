import { modelKey } from '../domain/job'
import type { LearnedModel, Samples, ServiceEstimate, ServiceSample } from '../ports/samples'
import { ema } from './ema'
import {
  createLatest,
  type LearnedMeans,
  type LearnedPair,
  type LearnedRate,
  type LearnedStore,
  MAX_PAIRS,
} from './learned'
import type { LearnedParallelism } from './parallelism'
import { createWindow, p75Of, type Window, type WindowSummary } from './percentile'
import { concurrencyOf, type DecodeSpeeds, nearestSpeed, rateOf, type Speed, withMeasured } from './speed'
import { bytesPerTokenOf, type TokenRatio, withPrompt } from './token-ratio'
import { createWatch } from './watch'
import type { Writable } from '../domain/writable'

/** Moving averages per node:model and per node, in memory. Values that are not finite or negative are ignored. */
export const createSamples = (store: LearnedStore = {}): Samples & { size(): number } => {
  const pairs = createLatest<LearnedPair>(MAX_PAIRS)
  const rates = createLatest<LearnedRate>(MAX_PAIRS)
  const means = createLatest<LearnedMeans>(MAX_PAIRS)
  const ratios = createLatest<TokenRatio>(MAX_PAIRS)
  const windows = createLatest<Window>(MAX_PAIRS)
  const pairKey = createPairKeys()
  const watch = createWatch(pairKey, MAX_PAIRS)

  const known = store.load?.() ?? {}
  for (const pair of known.pairs ?? []) {
    pairs.set(pairKey(pair.node, pair.model), pair)
    if (pair.parallelism !== undefined) watch.restore(pair.node, pair.model, pair.parallelism)
  }
  for (const rate of known.rates ?? []) rates.set(rate.node, rate)
  for (const mean of known.means ?? []) means.set(mean.node, mean)
  for (const ratio of known.ratios ?? []) ratios.set(ratio.model, ratio)

  const pairOf = (node: string, model: string): LearnedPair =>
    pairs.get(pairKey(node, model)) ?? { node, model: modelKey(model), services: 0, loads: 0 }

  return {
    addService(sample) {
      const { node, model, durationMs } = sample
      if (!isDuration(durationMs)) return
      const key = pairKey(node, model)
      const before = pairs.get(key)
      const window = windows.set(key, windows.get(key) ?? createWindow(before?.window))
      window.add(durationMs)
      const next = pairs.set(key, withService(before, sample, window.summary(), watch.learned(node, model)))
      const mean = means.set(node, meansOf(means.get(node), sample))
      store.save?.({ pairs: [next], means: [mean] })
    },

    addLoad(node, model, tookMs, sizeGb) {
      if (!isDuration(tookMs)) return
      const pair = pairOf(node, model)
      const next = pairs.set(pairKey(node, model), {
        ...pair,
        loadMs: ema(pair.loadMs, tookMs),
        loads: pair.loads + 1,
      })
      const rate = nextRate(rates.get(node), node, tookMs, sizeGb)
      if (rate !== undefined) rates.set(node, rate)
      store.save?.({ pairs: [next], rates: rate === undefined ? [] : [rate] })
    },

    addPrompt(model, bytes, tokens) {
      const key = modelKey(model)
      const before = ratios.get(key)
      const next = withPrompt(before, key, bytes, tokens)
      if (next === undefined || next === before) return
      ratios.set(key, next)
      store.save?.({ ratios: [next] })
    },

    service: (node, model) => serviceOf(pairs.get(pairKey(node, model))),

    p75: (node, model) => {
      const window = pairs.get(pairKey(node, model))?.window
      return window && p75Of(window)
    },

    prefill: (node, model) => rateOf(pairs.get(pairKey(node, model))?.prefill),
    decode: (node, model, concurrency) => rateOf(nearestSpeed(pairs.get(pairKey(node, model))?.decode, concurrency)),
    nodeMeans: (node) => means.get(node),

    loadMs(node, model, sizeGb) {
      const pair = pairs.get(pairKey(node, model))
      const measured = estimate(pair?.loadMs, pair?.loads)
      if (measured || sizeGb === undefined) return measured
      const rate = rates.get(node)
      return rate && { meanMs: (sizeGb / rate.gbPerSecond) * 1000, samples: rate.loads }
    },

    bytesPerToken: (model) => bytesPerTokenOf(ratios.get(modelKey(model))),

    learned(node) {
      const { latencyMs, tokensPerSecond, samples = 0 } = means.get(node) ?? {}
      const rate = rates.get(node)
      const models = pairs.values().filter((pair) => pair.node === node)
      return {
        samples,
        ...(latencyMs === undefined ? {} : { latencyMs }),
        ...(tokensPerSecond === undefined ? {} : { tokensPerSecond }),
        ...(rate === undefined ? {} : { loadGbPerSecond: rate.gbPerSecond }),
        models: models
          .map((pair) => learnedModel(pair, watch.of(node, pair.model)))
          .sort((a, b) => (a.model < b.model ? -1 : 1)),
      }
    },

    forget(node) {
      const isThere = (one: { readonly node: string }): boolean => one.node === node
      pairs.deleteWhere(isThere)
      windows.deleteWhere((_window, key) => key.startsWith(pairKey(node, '')))
      rates.deleteWhere(isThere)
      means.deleteWhere(isThere)
      watch.forget(node)
      store.forget?.(node)
    },

    parallelism: watch,
    size: () => pairs.size,
  }
}

/** The pair with one more answer in it. */
const withService = (
  before: LearnedPair | undefined,
  sample: ServiceSample,
  window: WindowSummary,
  parallelism: LearnedParallelism | undefined,
): LearnedPair => {
  const pair: Writable<LearnedPair> = {
    node: sample.node,
    model: before?.model ?? modelKey(sample.model),
    serviceMs: ema(before?.serviceMs, sample.durationMs),
    services: (before?.services ?? 0) + 1,
    loads: before?.loads ?? 0,
    window,
  }
  if (before?.loadMs !== undefined) pair.loadMs = before.loadMs
  const prefill = prefillWith(before?.prefill, sample)
  if (prefill !== undefined) pair.prefill = prefill
  const decode = decodeWith(before?.decode, sample)
  if (decode !== undefined) pair.decode = decode
  const slots = parallelism ?? before?.parallelism
  if (slots !== undefined) pair.parallelism = slots
  return pair
}

const prefillWith = (before: Speed | undefined, { tokensIn, prefillMs }: ServiceSample): Speed | undefined =>
  tokensIn === undefined || prefillMs === undefined ? before : withMeasured(before, tokensIn, prefillMs)

/** The first token is there when decoding begins, so it took none of its time. */
const decodeWith = (before: DecodeSpeeds | undefined, sample: ServiceSample): DecodeSpeeds | undefined => {
  const { tokensOut, decodeMs, concurrency = 1 } = sample
  if (tokensOut === undefined || decodeMs === undefined) return before
  const at = String(concurrencyOf(concurrency))
  const speed = withMeasured(before?.[at], tokensOut - 1, decodeMs)
  return speed === undefined || speed === before?.[at] ? before : { ...before, [at]: speed }
}

const meansOf = (before: LearnedMeans | undefined, sample: ServiceSample): LearnedMeans => {
  const { node, durationMs, tokensOut = 0, decodeMs = 0 } = sample
  const rate = tokensOut < 2 || decodeMs <= 0 ? undefined : (tokensOut * 1000) / decodeMs
  const tokensPerSecond = rate === undefined ? before?.tokensPerSecond : ema(before?.tokensPerSecond, rate)
  const latencyMs = ema(before?.latencyMs, durationMs)
  const means: Writable<LearnedMeans> = { node, latencyMs, samples: (before?.samples ?? 0) + 1 }
  if (tokensPerSecond !== undefined) means.tokensPerSecond = tokensPerSecond
  return means
}

const learnedModel = (pair: LearnedPair, parallelism: LearnedModel['parallelism']): LearnedModel => {
  const service = serviceOf(pair)
  const load = estimate(pair.loadMs, pair.loads)
  const prefill = rateOf(pair.prefill)
  const p75Ms = pair.window && p75Of(pair.window)
  return {
    model: pair.model,
    ...(service === undefined ? {} : { service: { ...service, ...(p75Ms === undefined ? {} : { p75Ms }) } }),
    ...(load === undefined ? {} : { load }),
    ...(prefill === undefined ? {} : { prefill }),
    decode: Object.entries(pair.decode ?? {}).flatMap(([concurrency, speed]) => {
      const rate = rateOf(speed)
      return rate === undefined ? [] : [{ concurrency: Number(concurrency), ...rate }]
    }),
    ...(parallelism === undefined ? {} : { parallelism }),
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

const serviceOf = (pair: LearnedPair | undefined): ServiceEstimate | undefined =>
  estimate(pair?.serviceMs, pair?.services)

const estimate = (meanMs: number | undefined, samples = 0): ServiceEstimate | undefined =>
  meanMs === undefined ? undefined : { meanMs, samples }

const isDuration = (ms: number): boolean => Number.isFinite(ms) && ms >= 0

/** Names that clients and nodes give models are without bound. */
const MAX_KEYS = 2 * MAX_PAIRS

/** Names pairs, one name for all spellings of a model. Every request asks several times, so that names are kept. */
const createPairKeys = (): ((node: string, model: string) => string) => {
  const keys = new Map<string, Map<string, string>>()
  let count = 0
  return (node, model) => {
    const known = keys.get(node)?.get(model)
    if (known !== undefined) return known
    // NUL stands in no node or model name.
    const key = `${node}\0${modelKey(model)}`
    if (++count > MAX_KEYS) {
      keys.clear()
      count = 1
    }
    const ofNode = keys.get(node) ?? new Map<string, string>()
    keys.set(node, ofNode.set(model, key))
    return key
  }
}
