/** Between two turns of the wheel, in real ms. */
const TICK_MS = 5
/** The longest wait that a timer takes, 24 days; a longer one would end at once. */
const LONGEST_MS = 2_147_483_647

/** The time of a fake engine, in simulated ms. However many requests run, one timer drives them. */
export interface Wheel {
  now(): number
  /** Returns the function that calls it off. */
  after(ms: number, run: () => void): () => void
  /** Called at every turn with the simulated ms since the last, until it returns false. */
  each(step: (elapsedMs: number) => boolean): void
  stop(): void
}

/** `scale`: simulated ms in one real ms. The wheel stands still while nobody runs. */
export const createWheel = (scale: number): Wheel => {
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const steps = new Map<(elapsedMs: number) => boolean, number>()
  let interval: ReturnType<typeof setInterval> | undefined
  let stopped = false

  const now = (): number => performance.now() * scale

  const halt = (): void => {
    clearInterval(interval)
    interval = undefined
  }

  const turn = (): void => {
    const at = now()
    for (const [step, last] of steps) {
      steps.set(step, at)
      if (!step(at - last)) steps.delete(step)
    }
    if (steps.size === 0) halt()
  }

  return {
    now,
    after(ms, run) {
      const timer = setTimeout(
        () => {
          timers.delete(timer)
          if (!stopped) run()
        },
        Math.min(ms / scale, LONGEST_MS),
      )
      timers.add(timer)
      return () => {
        clearTimeout(timer)
        timers.delete(timer)
      }
    },
    each(step) {
      if (stopped) return
      if (!steps.has(step)) steps.set(step, now())
      interval ??= setInterval(turn, TICK_MS)
    },
    stop() {
      stopped = true
      halt()
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
