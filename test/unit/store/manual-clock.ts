import type { Clock } from '../../../src/ports/clock'

interface Timer {
  readonly at: number
  readonly run: () => void
}

/** Time that only moves when told to. */
export const manualClock = (startMs = 1_700_000_000_000): Clock & { advance(ms: number): void; pending(): number } => {
  let now = startMs
  const timers = new Set<Timer>()

  const next = (until: number): Timer | undefined =>
    [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]

  return {
    now: () => now,
    setTimeout: (run, ms) => {
      const timer = { at: now + ms, run }
      timers.add(timer)
      return timer
    },
    clearTimeout: (handle) => {
      for (const timer of timers) if (timer === handle) timers.delete(timer)
    },
    advance: (ms) => {
      const until = now + ms
      for (let timer = next(until); timer; timer = next(until)) {
        timers.delete(timer)
        now = timer.at
        timer.run()
      }
      now = until
    },
    pending: () => timers.size,
  }
}
