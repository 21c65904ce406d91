import type { Database } from 'bun:sqlite'
import { type Learned, type LearnedPair, type LearnedRate, MAX_PAIRS } from '../learning/service-times'

interface PairRow {
  readonly node: string
  readonly model: string
  readonly service_ms: number | null
  readonly services: number
  readonly load_ms: number | null
  readonly loads: number
}

interface RateRow {
  readonly node: string
  readonly gb_per_second: number
  readonly loads: number
}

/** Learned means: one row a node:model and one a node, however many requests they come from. */
export const learnedTables = (database: Database) => {
  const insertPair = database.query(
    `INSERT OR REPLACE INTO learned_pairs (node, model, service_ms, services, load_ms, loads, saved_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertRate = database.query(
    'INSERT OR REPLACE INTO learned_rates (node, gb_per_second, loads, saved_at) VALUES (?, ?, ?, ?)',
  )

  return {
    insertPair: ({ node, model, serviceMs, services, loadMs, loads }: LearnedPair, at: number): void => {
      insertPair.run(node, model, serviceMs ?? null, services, loadMs ?? null, loads, at)
    },
    insertRate: ({ node, gbPerSecond, loads }: LearnedRate, at: number): void => {
      insertRate.run(node, gbPerSecond, loads, at)
    },
    load: (): Learned => ({
      pairs: newest<PairRow>(database, 'learned_pairs').map(toPair),
      rates: newest<RateRow>(database, 'learned_rates').map(({ node, gb_per_second, loads }) => ({
        node,
        gbPerSecond: gb_per_second,
        loads,
      })),
    }),
    /** Deletes what `load` would not give anyway. */
    prune: (): void => {
      for (const table of ['learned_pairs', 'learned_rates'] as const) {
        database.run(
          `DELETE FROM ${table} WHERE saved_at < (SELECT saved_at FROM ${table} ORDER BY saved_at DESC LIMIT 1 OFFSET ${MAX_PAIRS - 1})`,
        )
      }
    },
  }
}

/** Least recently saved first, as the samples expect them. */
const newest = <Row>(database: Database, table: 'learned_pairs' | 'learned_rates'): Row[] =>
  database.query<Row, []>(`SELECT * FROM ${table} ORDER BY saved_at DESC LIMIT ${MAX_PAIRS}`).all().reverse()

const toPair = ({ node, model, service_ms, services, load_ms, loads }: PairRow): LearnedPair => ({
  node,
  model,
  ...(service_ms !== null && { serviceMs: service_ms }),
  services,
  ...(load_ms !== null && { loadMs: load_ms }),
  loads,
})
