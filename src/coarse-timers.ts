/** Timers this long or longer, in ms, may be late by one tick. */
export const COARSE_FROM_MS = 10_000
const TICK_MS = 500

interface Coarse {
  readonly run: () => void
  readonly bucket: Set<Coarse>
}

/**
 * Long deadlines that hardly ever fire, of which every request sets several: kept in one bucket per tick, they cost an
 * insertion and a deletion instead of a timer of the system each. A deadline fires at most one tick late, never early.
 */
export const createCoarseTimers = (
  now: () => number,
  every: (run: () => void, ms: number) => () => void,
): { set(run: () => void, ms: number): unknown; clear(handle: unknown): boolean } => {
  const buckets = new Map<number, Set<Coarse>>()
  let stop: (() => void) | undefined

  const tick = (): void => {
    const due = Math.floor(now() / TICK_MS)
    for (const [at, bucket] of buckets) {
      if (at > due) continue
      buckets.delete(at)
      for (const timer of bucket) {
        // One that runs may clear another of the same tick.
        if (bucket.delete(timer)) timer.run()
      }
    }
    if (buckets.size > 0) return
    stop?.()
    stop = undefined
  }

  return {
    set: (run, ms) => {
      const at = Math.ceil((now() + ms) / TICK_MS)
      let bucket = buckets.get(at)
      if (bucket === undefined) {
        bucket = new Set()
        buckets.set(at, bucket)
      }
      const timer: Coarse = { run, bucket }
      bucket.add(timer)
      stop ??= every(tick, TICK_MS)
      return timer
    },
    clear: (handle) => {
      const { bucket } = handle as Partial<Coarse>
      return bucket instanceof Set && bucket.delete(handle as Coarse)
    },
  }
}
