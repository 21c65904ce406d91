/** How long something took of what this process had of the machine: other processes must not fail a test. */
import { readFileSync } from 'node:fs'

/** What the kernel counts for the main thread; the second number is how long it stood ready while others ran. */
const SCHEDULED = '/proc/self/schedstat'

/** In ms; 0 where the kernel does not tell. */
const stoodReady = (): number => {
  try {
    return Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1] ?? 0) / 1e6
  } catch {
    return 0
  }
}

/** Tells the ms since it was started, less those in which this process could have run and was not let. */
export const startWatch = (): (() => number) => {
  const from = performance.now()
  const ready = stoodReady()
  return () => performance.now() - from - (stoodReady() - ready)
}
