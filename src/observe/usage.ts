import type { Fact } from '../domain/facts'
import type { KeyUsage, UsageBook } from '../ports/usage'
import type { Sink } from './journal'

/** Where the days outlive the process. `save` gets the whole row of a day that changed and must not block. */
export interface UsageStore {
  load(): readonly KeyUsage[]
  save(row: KeyUsage): void
}

const MS_PER_SECOND = 1_000

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Counts what each key uses, a row a day. */
export const createUsage = (store: UsageStore): UsageBook & Sink => {
  const days = new Map<string, Map<string, KeyUsage>>()

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
