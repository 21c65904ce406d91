/** How fast time runs until a clock that was put back has caught up, as a share of real time. */
const CATCHING_UP = 0.9

/**
 * The time of day in whole ms, which never goes back: what is under way is timed by differences of it, and would otherwise
 * last longer by as much as the clock was put back. A clock that is put forward is followed at once, and so is the time that
 * the machine slept. One that was put back is waited for at nine tenths of the pace of `steady`, a clock that nobody sets.
 */
export const createForwardTime = (timeOfDay: () => number, steady: () => number): (() => number) => {
  let latest = Number.NEGATIVE_INFINITY
  /** When `steady` was last looked at while the time of day is behind; NaN while it is not. */
  let lookedAt = Number.NaN

  const waitForClock = (): number => {
    const at = steady()
    if (!Number.isNaN(lookedAt)) latest += (at - lookedAt) * CATCHING_UP
    lookedAt = at
    return Math.floor(latest)
  }

  return () => {
    const time = timeOfDay()
    if (time < latest) return waitForClock()
    latest = time
    lookedAt = Number.NaN
    return time
  }
}
