import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import type { DecisionQuery, Decisions } from '../ports/decisions'
import { createRecent } from './recent'

/** A settled record at rest: one text instead of some forty objects that every garbage collection would walk. */
interface Packed {
  readonly at: number
  readonly text: string
}

const unpacked = ({ text }: Packed): DecisionRecord => JSON.parse(text) as DecisionRecord

/** The newest `limit` settled records, for a router without a store. */
export const createRecentRecords = (limit: number): Decisions & { save(record: DecisionRecord): void } => {
  const settled = createRecent<Packed>(limit)

  /** No more of them is unpacked than it takes. */
  const list = (query: DecisionQuery): DecisionRecord[] => {
    const found: DecisionRecord[] = []
    for (const packed of [...settled.values()].sort((a, b) => b.at - a.at)) {
      if (found.length === query.limit) break
      const record = unpacked(packed)
      if (recordMatches(record, query)) found.push(record)
    }
    return found
  }

  return {
    save: (record) => settled.set(record.id, { at: record.at, text: JSON.stringify(record) }),
    get: (id) => {
      const packed = settled.get(id)
      return packed && unpacked(packed)
    },
    last: () => list({ limit: 1 })[0],
    list,
  }
}
