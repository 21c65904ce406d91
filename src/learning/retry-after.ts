/** A request past its mean is expected to need at least this share of the mean more. */
const FLOOR_SHARE = 0.1
const MAX_SECONDS = 600

export interface Running {
  readonly elapsedMs: number
  /** Mean service time of its kind, where that is another one. */
  readonly meanMs?: number
}

export interface QueueState {
  /** The requests that hold a slot now; `elapsedMs` is negative for one that has yet to begin. */
  readonly running: readonly Running[]
  /** Mean service time of one request. */
  readonly meanMs: number
  /** Requests that run at once. */
  readonly slots: number
  /** Requests that stand before the refused one. */
  readonly ahead: number
}

/**
 * Seconds until a place should be free, for `Retry-After`: an integer from 1 to 600.
 *
 *     free slot:  0                                   when fewer run than there are slots
 *                 min over running of max(mean - elapsed, mean / 10)   otherwise
 *     result:     ceil((free slot + ahead / slots * mean) / 1000)
 */
export const retryAfterSeconds = ({ running, meanMs, slots, ahead }: QueueState): number => {
  const places = Math.max(1, Math.floor(slots))
  const mean = Math.max(0, meanMs)
  const freeMs = running.length < places ? 0 : firstFreeMs(running, mean)
  const seconds = Math.ceil((freeMs + (Math.max(0, ahead) / places) * mean) / 1000)
  return Number.isNaN(seconds) ? 1 : Math.min(MAX_SECONDS, Math.max(1, seconds))
}

const firstFreeMs = (running: QueueState['running'], mean: number): number =>
  running.reduce((least, { elapsedMs, meanMs = mean }) => {
    const restMs = Math.max(meanMs - elapsedMs, meanMs * FLOOR_SHARE)
    return Math.min(least, restMs)
  }, Number.POSITIVE_INFINITY)
