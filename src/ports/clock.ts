/** Time for everything that waits. The same shape as XState's clock, plus the wall time in ms since the epoch. */
export interface Clock {
  /** Never goes back, though the machine's clock may; it may be ahead of it then. */
  now(): number
  setTimeout(run: () => void, ms: number): unknown
  clearTimeout(handle: unknown): void
}
