import type { DecisionRecord } from '../domain/record'

export interface DecisionQuery {
  readonly limit: number
  readonly model?: string
  readonly node?: string
  readonly end?: string
  readonly clientRequestId?: string
}

/** Decision records: all running ones, the last 2 000 in memory, older ones in the store. */
export interface Decisions {
  get(id: string): DecisionRecord | undefined
  /** The newest settled or running record. */
  last(): DecisionRecord | undefined
  list(query: DecisionQuery): DecisionRecord[]
}
