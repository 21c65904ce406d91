import type { DecisionRecord } from '../domain/record'
import type { Learned } from '../learning/learned'
import type { Decisions } from '../ports/decisions'
import type { KeyUsage } from '../ports/usage'
import type { AdmissionStore } from '../ports/admissions'
import type { IdentityStore } from '../ports/identities'
import type { VideoStore } from '../ports/videos'

/** What outlives a request, and with SQLite the process: settled decision records and learned means. */
export interface Store extends Decisions {
  /** Takes a settled record, which never changes again; it is readable at once and written with the next batch. */
  save(record: DecisionRecord): void
  readonly learned: {
    /** Read once at start. */
    load(): Learned
    /** Takes changed aggregates; the latest of each pair is written with the next batch. */
    save(changed: Partial<Learned>): void
    /** Deletes what was learned of the node. */
    forget(node: string): void
  }
  /** Which weights the names of models stand for; written with the next batch. */
  readonly identities: IdentityStore
  /** Nodes that an operator paused or drains; written with the next batch. */
  readonly admissions: AdmissionStore
  readonly usage: {
    /** Read once at start. */
    load(): readonly KeyUsage[]
    /** Takes the row of a day that changed; the latest is written with the next batch. */
    save(row: KeyUsage): void
  }
  /** Videos that were begun; written with the next batch. */
  readonly videos: VideoStore
  /** Records and learned rows that could not be written, and why the last time. */
  trouble(): { readonly lost: number; readonly message?: string }
  /** Writes what is pending and ends. Nothing may be saved afterwards. */
  close(): void
}

/** More are never returned by one query. */
export const MAX_LIST = 1_000
