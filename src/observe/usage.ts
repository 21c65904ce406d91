import type { Fact } from '../domain/facts'
import type { KeyUsage, UsageBook } from '../ports/usage'
import type { Sink } from './journal'

/** Where the days outlive the process. `save` gets the whole row of a day that changed and must not block. */
export interface UsageStore {
  load(): readonly KeyUsage[]
  save(row: KeyUsage): void
}

const MS_PER_SECOND = 1_000

const MS_PER_DAY = 86_400_000

/** The day in UTC, `2026-01-31`, which is made anew only when another one begins. */
const createDays = (): ((at: number) => string) => {
  let last = Number.NaN
  let text = ''
  return (at) => {
    const day = Math.floor(at / MS_PER_DAY)
    if (day !== last) {
      last = day
      text = new Date(at).toISOString().slice(0, 10)
    }
    return text
  }
}

/** Counts what each key uses, a row a day. */
export const createUsage = (store: UsageStore): UsageBook & Sink => {
  const days = new Map<string, Map<string, KeyUsage>>()
  const dayOf = createDays()

  const keep = (row: KeyUsage): void => {
    const ofKey = days.get(row.key) ?? new Map<string, KeyUsage>()
    days.set(row.key, ofKey.set(row.day, row))
  }

  store.load().forEach(keep)

  return {
    name: 'usage',
    hear: (fact: Fact) => {
      if (fact.type !== 'request.settled' || fact.key === undefined) return
      const { key, at, outcome } = fact
      const day = dayOf(at)
      const before = days.get(key)?.get(day)
      const row: KeyUsage = {
        key,
        day,
        requests: (before?.requests ?? 0) + 1,
        tokensIn: (before?.tokensIn ?? 0) + (outcome.tokensIn ?? 0),
        tokensOut: (before?.tokensOut ?? 0) + (outcome.tokensOut ?? 0),
        engineSeconds: (before?.engineSeconds ?? 0) + (outcome.engineMs ?? 0) / MS_PER_SECOND,
      }
      keep(row)
      store.save(row)
    },
    of: (key) => [...(days.get(key)?.values() ?? [])].sort((a, b) => (a.day < b.day ? 1 : -1)),
  }
}
