import { bounded } from './bounds'

/** How long repetitions of a warning are only counted. */
export const FOLD_MS = 10_000
/** Different warnings watched at once. */
const MAX_FOLDS = 1_000
const MAX_KEY = 256

/** Whom a warning is about: the one field that tells warnings of a kind apart. */
export type Subject = Readonly<Record<string, string>>

interface Fold {
  readonly what: string
  readonly subject: Subject
  readonly untilMs: number
  count: number
}

export interface Repeated {
  readonly what: string
  readonly subject: Subject
  /** How many were not written. */
  readonly count: number
}

/** Lets the first warning of a kind and subject through and counts those that follow within 10 s. */
export interface Folding {
  /** Whether to write this one. Times in ms, all on one clock. */
  admits(what: string, subject: Subject, nowMs: number): boolean
  /** What was counted in windows that are over, or in all. Each is told once. */
  collect(nowMs?: number): readonly Repeated[]
}

export const createFolding = (): Folding => {
  const folds = new Map<string, Fold>()
  const NONE: readonly Repeated[] = []

  return {
    admits: (what, subject, nowMs) => {
      const key = bounded([what, ...Object.values(subject)].join('\0'), MAX_KEY)
      const fold = folds.get(key)
      if (fold && nowMs < fold.untilMs) {
        fold.count++
        return false
      }
      folds.delete(key)
      if (folds.size < MAX_FOLDS) folds.set(key, { what, subject, untilMs: nowMs + FOLD_MS, count: 0 })
      return true
    },
    collect: (nowMs = Number.POSITIVE_INFINITY) => {
      if (folds.size === 0) return NONE
      const repeated: Repeated[] = []
      // Windows open in the order of time and last equally long: the first one still open ends the search.
      for (const [key, { what, subject, untilMs, count }] of folds) {
        if (nowMs < untilMs) break
        folds.delete(key)
        if (count > 0) repeated.push({ what, subject, count })
      }
      return repeated
    },
  }
}
