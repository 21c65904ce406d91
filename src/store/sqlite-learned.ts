import type { Database } from 'bun:sqlite'
import { type Learned, type LearnedMeans, type LearnedPair, type LearnedRate, MAX_PAIRS } from '../learning/learned'
import type { TokenRatio } from '../learning/token-ratio'

interface PairRow {
  readonly node: string
  readonly model: string
  readonly service_ms: number | null
  readonly services: number
  readonly load_ms: number | null
  readonly loads: number
  readonly detail: string | null
}

/** What no query looks at, as JSON that was written by this process or an earlier one. */
type Detail = Pick<LearnedPair, 'window' | 'prefill' | 'decode' | 'parallelism'>

interface RateRow {
  readonly node: string
  readonly gb_per_second: number
  readonly loads: number
}

interface MeansRow {
  readonly node: string
  readonly latency_ms: number
  readonly tokens_per_second: number | null
  readonly samples: number
}

const TABLES = ['learned_pairs', 'learned_rates', 'learned_means', 'learned_ratios'] as const
type Table = (typeof TABLES)[number]

/** Learned means: one row a node:model, a node or a model, however many requests they come from. */
export const learnedTables = (database: Database) => {
  const insertPair = database.query(
    `INSERT OR REPLACE INTO learned_pairs (node, model, service_ms, services, load_ms, loads, detail, saved_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertRate = database.query(
    'INSERT OR REPLACE INTO learned_rates (node, gb_per_second, loads, saved_at) VALUES (?, ?, ?, ?)',
  )
  const insertMeans = database.query(
    'INSERT OR REPLACE INTO learned_means (node, latency_ms, tokens_per_second, samples, saved_at) VALUES (?, ?, ?, ?, ?)',
  )
  const insertRatio = database.query(
    'INSERT OR REPLACE INTO learned_ratios (model, bytes, tokens, samples, saved_at) VALUES (?, ?, ?, ?, ?)',
  )

  const writePair = (pair: LearnedPair, at: number): void => {
    const { node, model, serviceMs, services, loadMs, loads } = pair
    insertPair.run(node, model, serviceMs ?? null, services, loadMs ?? null, loads, JSON.stringify(detailOf(pair)), at)
  }

  let pending = nothingPending()

  return {
    /** Called with every request: keys are the names as they come, and nothing is made but what is kept. */
    remember: (changed: Partial<Learned>): void => {
      const { pairs, rates, means, ratios } = pending
      if (changed.pairs) for (const pair of changed.pairs) modelsOf(pairs, pair.node).set(pair.model, pair)
      if (changed.rates) for (const rate of changed.rates) rates.set(rate.node, rate)
      if (changed.means) for (const mean of changed.means) means.set(mean.node, mean)
      if (changed.ratios) for (const ratio of changed.ratios) ratios.set(ratio.model, ratio)
    },
    /** Writes what is remembered; `written` follows once that is on disk. */
    write: (at: number): void => {
      for (const ofNode of pending.pairs.values()) for (const pair of ofNode.values()) writePair(pair, at)
      for (const { node, gbPerSecond, loads } of pending.rates.values()) insertRate.run(node, gbPerSecond, loads, at)
      for (const { node, latencyMs, tokensPerSecond, samples } of pending.means.values())
        insertMeans.run(node, latencyMs, tokensPerSecond ?? null, samples, at)
      for (const { model, bytes, tokens, samples } of pending.ratios.values())
        insertRatio.run(model, bytes, tokens, samples, at)
    },
    written: (): void => {
      pending = nothingPending()
    },
    forget: (node: string): void => {
      for (const map of [pending.pairs, pending.rates, pending.means]) map.delete(node)
      for (const table of ['learned_pairs', 'learned_rates', 'learned_means'] as const)
        database.query(`DELETE FROM ${table} WHERE node = ?`).run(node)
    },
    load: (): Learned => ({
      pairs: newest<PairRow>(database, 'learned_pairs').map(toPair),
      rates: newest<RateRow>(database, 'learned_rates').map(({ node, gb_per_second, loads }) => ({
        node,
        gbPerSecond: gb_per_second,
        loads,
      })),
      means: newest<MeansRow>(database, 'learned_means').map(({ node, latency_ms, tokens_per_second, samples }) => ({
        node,
        latencyMs: latency_ms,
        ...(tokens_per_second !== null && { tokensPerSecond: tokens_per_second }),
        samples,
      })),
      ratios: newest<TokenRatio>(database, 'learned_ratios').map(({ model, bytes, tokens, samples }) => ({
        model,
        bytes,
        tokens,
        samples,
      })),
    }),
    /** Deletes what `load` would not give anyway. */
    prune: (): void => {
      for (const table of TABLES) {
        database.run(
          `DELETE FROM ${table} WHERE saved_at < (SELECT saved_at FROM ${table} ORDER BY saved_at DESC LIMIT 1 OFFSET ${MAX_PAIRS - 1})`,
        )
      }
    },
  }
}

/** Changed and not written yet; the latest of each. Pairs by node, then model. */
const nothingPending = () => ({
  pairs: new Map<string, Map<string, LearnedPair>>(),
  rates: new Map<string, LearnedRate>(),
  means: new Map<string, LearnedMeans>(),
  ratios: new Map<string, TokenRatio>(),
})

const modelsOf = (pairs: Map<string, Map<string, LearnedPair>>, node: string): Map<string, LearnedPair> => {
  const known = pairs.get(node)
  if (known !== undefined) return known
  const models = new Map<string, LearnedPair>()
  pairs.set(node, models)
  return models
}

/** Least recently saved first, as the samples expect them. */
const newest = <Row>(database: Database, table: Table): Row[] =>
  database.query<Row, []>(`SELECT * FROM ${table} ORDER BY saved_at DESC LIMIT ${MAX_PAIRS}`).all().reverse()

const detailOf = ({ window, prefill, decode, parallelism }: LearnedPair): Detail => ({
  ...(window && { window }),
  ...(prefill && { prefill }),
  ...(decode && { decode }),
  ...(parallelism && { parallelism }),
})

const toPair = ({ node, model, service_ms, services, load_ms, loads, detail }: PairRow): LearnedPair => ({
  node,
  model,
  ...(service_ms !== null && { serviceMs: service_ms }),
  services,
  ...(load_ms !== null && { loadMs: load_ms }),
  loads,
  ...(detail === null ? {} : (JSON.parse(detail) as Detail)),
})
