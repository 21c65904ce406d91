import { sameModel } from './job'
import type { DecisionRecord } from './record'

/** The model that the request ran on (as the fleet calls it), else the one that it was last bound for, else the asked one. */
export const recordModel = (record: DecisionRecord): string =>
  record.outcome?.model ?? lastPlaced(record)?.model ?? record.asked.model

/** The node that the request ran on, else the one that the last decision named. */
export const recordNode = (record: DecisionRecord): string | undefined =>
  record.outcome?.node ?? lastPlaced(record)?.node

/** The last decision that named a node. */
const lastPlaced = ({ rounds }: DecisionRecord): DecisionRecord['rounds'][number]['decision'] | undefined => {
  for (let i = rounds.length - 1; i >= 0; i--) {
    const decision = rounds[i]?.decision
    if (decision?.node !== undefined) return decision
  }
  return undefined
}

export interface RecordFilter {
  readonly model?: string
  readonly node?: string
  /** A terminal status, or `running`. */
  readonly end?: string
  readonly clientRequestId?: string
}

/** Whether the record passes every filter that is given. */
export const recordMatches = (record: DecisionRecord, { model, node, end, clientRequestId }: RecordFilter): boolean =>
  (model === undefined || sameModel(recordModel(record), model)) &&
  (node === undefined || recordNode(record) === node) &&
  (end === undefined || (record.outcome?.end ?? 'running') === end) &&
  (clientRequestId === undefined || record.asked.clientRequestId === clientRequestId)
