/** What one key may do at most; absent: no limit. */
export interface KeyLimit {
  readonly requestsPerMinute?: number
  readonly concurrent?: number
}

/** Tokens that a key has left; one is taken by each request. Filled evenly, up to what one minute brings. */
export interface Bucket {
  readonly tokens: number
  /** When it held so many, in ms since the epoch. */
  readonly at: number
}

export type Refusal =
  | { readonly limit: 'requests_per_minute'; readonly most: number; readonly retryAfterMs: number }
  | { readonly limit: 'concurrent'; readonly most: number }

const MINUTE_MS = 60_000

/** What the bucket holds at `now`. */
export const filled = (bucket: Bucket | undefined, now: number, perMinute: number): Bucket => {
  if (bucket === undefined) return { tokens: perMinute, at: now }
  const tokens = bucket.tokens + (Math.max(0, now - bucket.at) / MINUTE_MS) * perMinute
  return { tokens: Math.min(perMinute, tokens), at: now }
}

/** Whole ms until the bucket holds a token again; what summing lost does not count. */
export const untilTokenMs = ({ tokens }: Bucket, perMinute: number): number =>
  Math.max(0, Math.round(((1 - tokens) / perMinute) * MINUTE_MS))

/** Counts the requests of each key, by its name. */
export interface KeyLimits {
  /** Takes the request in, or says which limit it is over; a request that is refused takes no token. */
  enter(request: string, key: string, limit: KeyLimit): Refusal | undefined
  /** The request has ended. Once is enough, more does no harm. */
  leave(request: string): void
  /** Requests of the key that are in the router. */
  running(key: string): number
}

export const createKeyLimits = (now: () => number): KeyLimits => {
  const buckets = new Map<string, Bucket>()
  const keyOf = new Map<string, string>()
  const counts = new Map<string, number>()

  const running = (key: string): number => counts.get(key) ?? 0
  const count = (key: string, by: number): void => {
    const left = running(key) + by
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }

  return {
    enter: (request, key, { requestsPerMinute, concurrent }) => {
      if (concurrent !== undefined && running(key) >= concurrent) return { limit: 'concurrent', most: concurrent }
      if (requestsPerMinute !== undefined) {
        const bucket = filled(buckets.get(key), now(), requestsPerMinute)
        const retryAfterMs = untilTokenMs(bucket, requestsPerMinute)
        if (retryAfterMs > 0) {
          buckets.set(key, bucket)
          return { limit: 'requests_per_minute', most: requestsPerMinute, retryAfterMs }
        }
        buckets.set(key, { ...bucket, tokens: bucket.tokens - 1 })
      }
      if (!keyOf.has(request)) count(key, 1)
      keyOf.set(request, key)
      return undefined
    },
    leave: (request) => {
      const key = keyOf.get(request)
      if (key === undefined) return
      keyOf.delete(request)
      count(key, -1)
    },
    running,
  }
}
