import type { Database } from 'bun:sqlite'
import type { Lineage } from '../ports/identities'
import { pendingRows } from './pending-rows'

interface Row {
  readonly lineage: string
}

/** The table of model names and the weights that they stand for: one row of JSON a name. */
export const identitiesTable = (database: Database) => {
  const insert = database.query('INSERT OR REPLACE INTO model_identities (model, lineage) VALUES (?, ?)')

  return {
    // The JSON was written by this process or an earlier one; the table is ours alone.
    load: (): readonly Lineage[] =>
      database
        .query<Row, []>('SELECT lineage FROM model_identities ORDER BY model')
        .all()
        .map(({ lineage }) => JSON.parse(lineage) as Lineage),
    ...pendingRows<Lineage>((model, lineage) => insert.run(model, JSON.stringify(lineage))),
  }
}
