import type { Database } from 'bun:sqlite'
import type { Closed } from '../ports/admissions'

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
  /** By node; undefined is to be deleted. */
  const pending = new Map<string, Closed | undefined>()

  return {
    load: (): readonly Closed[] =>
      database
        .query<Row, []>('SELECT node, admission, configured, at FROM node_admissions ORDER BY node')
        .all()
        .map(({ node, admission, configured, at }) => ({ node, admission, isConfigured: configured === 1, at })),
    remember: (node: string, closed: Closed | undefined): void => void pending.set(node, closed),
    write: (): void => {
      for (const [node, closed] of pending) {
        if (closed === undefined) remove.run(node)
        else insert.run(node, closed.admission, closed.isConfigured ? 1 : 0, closed.at)
      }
    },
    /** What was written is on disk. */
    forget: (): void => pending.clear(),
  }
}
