import type { Database } from 'bun:sqlite'
import type { Closed } from '../ports/admissions'
import { pendingRows } from './pending-rows'

interface Row {
  readonly node: string
  readonly admission: Closed['admission']
  readonly configured: number
  readonly at: number
}

/** The table of nodes that an operator paused or drains. What changed waits for the next batch. */
export const admissionsTable = (database: Database) => {
  const insert = database.query(
    'INSERT OR REPLACE INTO node_admissions (node, admission, configured, at) VALUES (?, ?, ?, ?)',
  )
  const remove = database.query('DELETE FROM node_admissions WHERE node = ?')

  return {
    load: (): readonly Closed[] =>
      database
        .query<Row, []>('SELECT node, admission, configured, at FROM node_admissions ORDER BY node')
        .all()
        .map(({ node, admission, configured, at }) => ({ node, admission, isConfigured: configured === 1, at })),
    ...pendingRows<Closed>(
      (node, { admission, isConfigured, at }) => insert.run(node, admission, isConfigured ? 1 : 0, at),
      (node) => remove.run(node),
    ),
  }
}
