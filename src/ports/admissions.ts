import type { Admission } from '../domain/node'

/** That an operator paused or drains a node. */
export interface Closed {
  readonly node: string
  readonly admission: Exclude<Admission, 'open'>
  /** The configuration had the node; otherwise it had been found. */
  readonly isConfigured: boolean
  /** When it was said, or last found to be so at a start, in ms since the epoch. */
  readonly at: number
}

/** Where that outlives the process. */
export interface AdmissionStore {
  /** Read once at start. */
  load(): readonly Closed[]
  /** Both take effect for the next `load`; must not block. */
  save(closed: Closed): void
  forget(node: string): void
}
