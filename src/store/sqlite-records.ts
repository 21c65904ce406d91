import type { Database } from 'bun:sqlite'
import { modelKey } from '../domain/job'
import type { DecisionRecord } from '../domain/record'
import { recordModel, recordNode } from '../domain/record-keys'
import type { DecisionQuery } from '../ports/decisions'

interface Row {
  readonly record: string
}

/** A record as it is stored: its JSON, and the columns that queries filter by. */
export interface RecordRow extends Row {
  readonly id: string
  readonly at: number
  readonly model: string
  readonly node: string | null
  readonly ended: string | null
  readonly clientRequestId: string | null
}

/** `text` is the record's JSON. */
export const rowOf = (record: DecisionRecord, text: string): RecordRow => ({
  id: record.id,
  at: record.at,
  model: modelKey(recordModel(record)),
  node: recordNode(record) ?? null,
  ended: record.outcome?.end ?? null,
  clientRequestId: record.asked.clientRequestId ?? null,
  record: text,
})

/** The JSON was written by this process or an earlier one; the table is ours alone. */
export const recordIn = ({ record }: Row): DecisionRecord => JSON.parse(record) as DecisionRecord

/** The table of decision records: one row of JSON a request, with the columns that queries filter by. */
export const recordsTable = (database: Database) => {
  const insert = database.query(
    `INSERT OR REPLACE INTO decisions (id, at, model, node, ended, client_request_id, record) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  const byId = database.query<Row, [string]>('SELECT record FROM decisions WHERE id = ?')
  const deleteOlder = database.query(
    'DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE at < ? ORDER BY at LIMIT ?)',
  )

  return {
    insert: ({ id, at, model, node, ended, clientRequestId, record }: RecordRow): void => {
      insert.run(id, at, model, node, ended, clientRequestId, record)
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
      const where = used.length === 0 ? '' : `WHERE ${used.map(({ column }) => `${column} = ?`).join(' AND ')}`
      return database
        .query<Row, (string | number)[]>(`SELECT record FROM decisions ${where} ORDER BY at DESC LIMIT ?`)
        .all(...used.map(({ value }) => value), limit)
        .map(recordIn)
    },
    /** Deletes at most `limit` records that arrived before; returns how many. */
    deleteBefore: (at: number, limit: number): number => deleteOlder.run(at, limit).changes,
  }
}
