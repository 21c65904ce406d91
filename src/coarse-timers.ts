/** Timers this long or longer, in ms, may be late by one tick. */
export const COARSE_FROM_MS = 10_000
const TICK_MS = 500

interface Coarse {
  readonly run: () => void
  readonly bucket: Coarse[]
  /** Where it stands in its bucket; -1 once it is out. */
  at: number
}

/** The last one takes its place: an order within a tick is not promised, and nothing is moved. */
const drop = (timer: Coarse): boolean => {
  const { bucket, at } = timer
  if (at < 0) return false
  const last = bucket.pop() as Coarse
  if (last !== timer) {
    bucket[at] = last
    last.at = at
  }
  timer.at = -1
  return true
}

/**
 * Long deadlines that hardly ever fire, of which every request sets several: kept in one bucket per tick, they cost an
 * insertion and a deletion instead of a timer of the system each. A deadline fires at most one tick late, never early.
 */
export const createCoarseTimers = (
  now: () => number,
  every: (run: () => void, ms: number) => () => void,
): { set(run: () => void, ms: number): unknown; clear(handle: unknown): boolean } => {
  const buckets = new Map<number, Coarse[]>()
  let stop: (() => void) | undefined

  const tick = (): void => {
    const due = Math.floor(now() / TICK_MS)
    for (const [at, bucket] of buckets) {
      if (at > due) continue
      // One that runs may clear another of the same tick, or throw: what is left then runs with the next tick.
      for (let timer = bucket[0]; timer !== undefined; timer = bucket[0]) {
        drop(timer)
        timer.run()
      }
      buckets.delete(at)
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
        bucket = []
        buckets.set(at, bucket)
      }
      const timer: Coarse = { run, bucket, at: bucket.length }
      bucket.push(timer)
      stop ??= every(tick, TICK_MS)
      return timer
    },
    clear: (handle) => (handle as Partial<Coarse>).at !== undefined && drop(handle as Coarse),
  }
}
