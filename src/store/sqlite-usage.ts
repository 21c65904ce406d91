import type { Database } from 'bun:sqlite'
import type { KeyUsage } from '../ports/usage'

interface Row {
  readonly key: string
  readonly day: string
  readonly requests: number
  readonly tokens_in: number
  readonly tokens_out: number
  readonly engine_seconds: number
}

/** Days that are read at the start and kept in the file. */
const KEPT_DAYS = 400
const DAY_MS = 86_400_000

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** One row a key and day, replaced whole as it grows. What changed waits for the next batch. */
export const usageTable = (database: Database) => {
  /** By key, then day. */
  let pending = new Map<string, Map<string, KeyUsage>>()
  const insert = database.query(
    `INSERT OR REPLACE INTO key_usage (key, day, requests, tokens_in, tokens_out, engine_seconds)
     VALUES (?, ?, ?, ?, ?, ?)`,
  )
  const deleteOlder = database.query('DELETE FROM key_usage WHERE day < ?')

  return {
    remember: (row: KeyUsage): void => {
      const days = pending.get(row.key)
      if (days === undefined) pending.set(row.key, new Map([[row.day, row]]))
      else days.set(row.day, row)
    },
    write: (): void => {
      for (const days of pending.values())
        for (const { key, day, requests, tokensIn, tokensOut, engineSeconds } of days.values())
          insert.run(key, day, requests, tokensIn, tokensOut, engineSeconds)
    },
    forget: (): void => {
      pending = new Map()
    },
    load: (): readonly KeyUsage[] =>
      database
        .query<Row, []>('SELECT * FROM key_usage ORDER BY day')
        .all()
        .map(({ key, day, requests, tokens_in, tokens_out, engine_seconds }) => ({
          key,
          day,
          requests,
          tokensIn: tokens_in,
          tokensOut: tokens_out,
          engineSeconds: engine_seconds,
        })),
    prune: (now: number): void => void deleteOlder.run(dayOf(now - KEPT_DAYS * DAY_MS)),
  }
}
