import type { Parallelism } from '../ports/samples'
import type { Observation } from './flights'

/** First bytes that are remembered: what an engine did longer ago may not hold any more. */
const REMEMBERED = 20
/** So many requests must have stood before that counts as a limit. */
const ENOUGH = 6
/** More at once are never learned. */
export const MAX_LEARNED = 16

/** Requests that must have ended before one more is tried where nothing was learned yet, or where a try showed nothing. */
const FIRST_TRY_AFTER = 5
/** The same after a try that found the limit where it was; each further one doubles it up to the last. */
const NEXT_TRY_AFTER = 20
const LAST_TRY_AFTER = 640

/** What outlives the process. */
export interface LearnedParallelism {
  readonly slots: number
  readonly tryAfter: number
}

/** One node:model's estimate. */
export interface ParallelismEstimate {
  /** A first byte came. */
  observe(observation: Observation): void
  /** A request is sent as the `position`th inside. */
  sent(request: string, position: number): void
  ended(request: string): void
  /** The named request, else the next one that is sent beyond the slots, is one more than is known. */
  trying(request?: string): void
  view(): Parallelism
  /** Undefined until something is learned. */
  learned(): LearnedParallelism | undefined
  readonly slots: number | undefined
  /** How many run at once as far as is known; while the first try is under way, one. */
  readonly assumed: number | undefined
}

/**
 * How many requests an engine runs at once, from the first tokens of those that overlap. Answers that are generated at
 * the same time prove a number from below. A number is a limit when none of the latest first tokens exceeded it and
 * enough requests stood while so many were being generated. A learned limit is doubted: now and then one more is tried,
 * and whether it runs or stands decides. Requests that begin late only because their prompt is long do not count as
 * standing, see `createFlights`.
 */
export const createParallelism = (known?: LearnedParallelism): ParallelismEstimate => {
  let slots = known?.slots
  let tryAfter = known?.tryAfter ?? FIRST_TRY_AFTER
  let endedSinceTry = 0
  /** The try under way: awaited, passed by so many others that were sent before it, or inside as `request`. */
  let attempt: { readonly awaited?: string; passed: number; request?: string } | undefined
  const latest: Observation[] = []

  const together = (): number => {
    let most = 0
    for (const one of latest) most = Math.max(most, one.together)
    return most
  }

  /** Those that stood while `limit` were being generated. */
  const stoodAt = (limit: number): number => {
    let count = 0
    for (const one of latest) if (one.stood === limit) count += 1
    return count
  }

  const settleTry = (after: number): void => {
    attempt = undefined
    endedSinceTry = 0
    tryAfter = after
  }

  const judgeTry = ({ together: reached, stood: level }: Observation): void => {
    const limit = slots ?? 1
    if (reached > limit) {
      slots = Math.min(MAX_LEARNED, reached)
      settleTry(0)
    } else if (level === limit) {
      slots = limit
      settleTry(Math.min(LAST_TRY_AFTER, Math.max(NEXT_TRY_AFTER, 2 * tryAfter)))
    } else settleTry(Math.max(FIRST_TRY_AFTER, tryAfter))
  }

  return {
    observe: (observation) => {
      if (attempt?.request === observation.request) judgeTry(observation)
      if (!observation.overlapped) return
      latest.push(observation)
      if (latest.length > REMEMBERED) latest.shift()
      const seen = together()
      if (slots !== undefined && seen > slots) slots = Math.min(MAX_LEARNED, seen)
      else if (seen !== slots && stoodAt(seen) >= ENOUGH) {
        slots = seen
        settleTry(NEXT_TRY_AFTER)
      }
    },

    sent: (request, position) => {
      if (attempt === undefined || attempt.request !== undefined) return
      const limit = slots ?? 1
      const isBeyond = position > limit
      if (attempt.awaited === undefined ? isBeyond : attempt.awaited === request) {
        // When a place has become free meanwhile it is no try.
        attempt = isBeyond ? { request, passed: 0 } : undefined
        return
      }
      // Those that were placed just before it go first; when there are more, it was never sent.
      attempt.passed += 1
      if (attempt.passed > limit) attempt = undefined
    },

    ended: (request) => {
      endedSinceTry += 1
      if (attempt?.request === request) settleTry(Math.max(FIRST_TRY_AFTER, tryAfter))
    },

    trying: (request) => {
      attempt = { passed: 0, ...(request === undefined ? {} : { awaited: request }) }
    },

    view: () => {
      const seen = together()
      return {
        ...(slots === undefined ? {} : { slots }),
        overlapping: latest.length,
        together: seen,
        stood: stoodAt(seen),
        mayTry: attempt === undefined && (slots ?? 1) < MAX_LEARNED && endedSinceTry >= tryAfter,
        trying: attempt !== undefined,
      }
    },

    learned: () => (slots === undefined ? undefined : { slots, tryAfter }),

    get slots() {
      return slots
    },
    get assumed() {
      return slots ?? (attempt === undefined ? undefined : 1)
    },
  }
}
