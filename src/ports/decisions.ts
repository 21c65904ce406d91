import type { DecisionRecord } from '../domain/record'

export interface DecisionQuery {
  readonly limit: number
  readonly model?: string
  readonly node?: string
  readonly end?: string
  readonly clientRequestId?: string
}

/** Decision records: those of running requests, and the settled ones that are kept. */
export interface Decisions {
  get(id: string): DecisionRecord | undefined
  /** The newest settled or running record. */
  last(): DecisionRecord | undefined
  list(query: DecisionQuery): DecisionRecord[]
}
