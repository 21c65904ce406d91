import type { Database } from 'bun:sqlite'
import { modelKey } from '../domain/job'
import type { DecisionRecord } from '../domain/record'
import { recordModel, recordNode } from '../domain/record-keys'
import type { DecisionQuery } from '../ports/decisions'

interface Row {
  readonly record: string
}

/** The JSON was written by this process or an earlier one; the table is ours alone. */
const recordIn = ({ record }: Row): DecisionRecord => JSON.parse(record) as DecisionRecord

/**
 * The table of decision records: one row of JSON a request, with the columns that queries filter by.
 *
 * Rows are appended as they come, and so are the entries of its indexes as long as ids grow with time: a batch then
 * changes a few pages at the end of each. The one index by time holds every column that lists filter by, so that a filter
 * that matches little is answered by walking it, newest first, without reading the records in between. An index of their
 * own have only the client's ids, which most records lack and which match one each, and what did not complete, which is
 * asked for most and found least (30 ms in 200 000 records by walking, 0.2 ms so).
 */
export const recordsTable = (database: Database) => {
  const insert = database.query(
    `INSERT OR REPLACE INTO decisions (id, at, model, node, ended, client_request_id, record) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  const byId = database.query<Row, [string]>('SELECT record FROM decisions WHERE id = ?')
  const deleteOlder = database.query(
    'DELETE FROM decisions WHERE rowid IN (SELECT rowid FROM decisions WHERE at < ? ORDER BY at LIMIT ?)',
  )

  return {
    insert: (record: DecisionRecord): void => {
      insert.run(
        record.id,
        record.at,
        modelKey(recordModel(record)),
        recordNode(record) ?? null,
        record.outcome?.end ?? null,
        record.asked.clientRequestId ?? null,
        JSON.stringify(record),
      )
    },
    get: (id: string): DecisionRecord | undefined => {
      const row = byId.get(id)
      return row === null ? undefined : recordIn(row)
    },
    list: ({ limit, model, node, end, clientRequestId }: DecisionQuery): DecisionRecord[] => {
      const filters: readonly (readonly [column: string, value: string | undefined])[] = [
        ['model', model === undefined ? undefined : modelKey(model)],
        ['node', node],
        ['ended', end],
        ['client_request_id', clientRequestId],
      ]
      const used = filters.flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
      const terms = used.map(({ column }) => `${column} = ?`)
      // Word for word as in the index, else it is not used.
      if (end !== undefined && end !== 'completed') terms.push("ended <> 'completed'")
      const where = terms.length === 0 ? '' : `WHERE ${terms.join(' AND ')}`
      return database
        .query<Row, (string | number)[]>(`SELECT record FROM decisions ${where} ORDER BY at DESC LIMIT ?`)
        .all(...used.map(({ value }) => value), limit)
        .map(recordIn)
    },
    /** Deletes at most `limit` records that arrived before; returns how many. */
    deleteBefore: (at: number, limit: number): number => deleteOlder.run(at, limit).changes,
  }
}
