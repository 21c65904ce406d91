import type { TokenRate } from '../ports/samples'
import { ema } from './ema'

/** Requests at once that decode speeds are told apart by; more count as this many. */
export const MAX_CONCURRENCY = 8
/** A shorter answer or prompt says more about overhead than about speed. */
const MIN_TOKENS = 4

/** Moving means of tokens and of the ms that they took. Their ratio is the speed, so that long requests weigh more. */
export interface Speed {
  readonly tokens: number
  readonly ms: number
  readonly samples: number
}

/** Decode speeds by the number of requests that ran at once, as a decimal key from `1` to `8`. */
export type DecodeSpeeds = Readonly<Record<string, Speed>>

/** The speed with one more measurement; unchanged by one that says nothing. */
export const withMeasured = (before: Speed | undefined, tokens: number, ms: number): Speed | undefined => {
  if (!(tokens >= MIN_TOKENS) || !(ms > 0) || !Number.isFinite(tokens / ms)) return before
  return {
    tokens: ema(before?.tokens, tokens),
    ms: ema(before?.ms, ms),
    samples: (before?.samples ?? 0) + 1,
  }
}

export const rateOf = (speed: Speed | undefined): TokenRate | undefined =>
  speed && { perSecond: (speed.tokens * 1000) / speed.ms, samples: speed.samples }

/** The key under which a measured mean concurrency belongs. */
export const concurrencyOf = (mean: number): number => Math.min(MAX_CONCURRENCY, Math.max(1, Math.round(mean)))

/** The speed at that concurrency, else at the nearest that was measured; of two equally near ones at the lower. */
export const nearestSpeed = (speeds: DecodeSpeeds | undefined, concurrency: number): Speed | undefined => {
  const wanted = concurrencyOf(concurrency)
  const [nearest] = Object.keys(speeds ?? {}).sort(
    (a, b) => Math.abs(Number(a) - wanted) - Math.abs(Number(b) - wanted) || Number(a) - Number(b),
  )
  return nearest === undefined ? undefined : speeds?.[nearest]
}
