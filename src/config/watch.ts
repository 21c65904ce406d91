import type { Clock } from '../ports/clock'

export interface WatchOptions {
  /** What tells one state of the file from another: real path, inode, time and size. Never rejects. */
  readonly stamp: () => Promise<string>
  readonly clock: Clock
  readonly changed: () => void
}

export interface Watch {
  start(): void
  stop(): void
}

/** Between two looks at a file that rests, in ms. */
const LOOK_EVERY_MS = 2_000
/** A file that changed has to rest for so long before it is read, in ms: editors and copies write in several steps. */
const SETTLE_MS = 500

/**
 * Looks at a file at intervals. Notifications of the file system would miss what this sees: files replaced by another,
 * symbolic links that point elsewhere, mounted maps, network drives.
 */
export const createWatch = ({ stamp, clock, changed }: WatchOptions): Watch => {
  let seen: string | undefined
  let isUnsettled = false
  let timer: unknown
  let isOver = false

  const look = async (): Promise<void> => {
    const now = await stamp()
    if (isOver) return
    if (seen !== undefined && now !== seen) isUnsettled = true
    else if (isUnsettled) {
      isUnsettled = false
      changed()
    }
    seen = now
    timer = clock.setTimeout(() => void look(), isUnsettled ? SETTLE_MS : LOOK_EVERY_MS)
  }

  return {
    start: () => void look(),
    stop() {
      isOver = true
      clock.clearTimeout(timer)
    },
  }
}
