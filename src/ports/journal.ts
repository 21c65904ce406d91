import type { Fact } from '../domain/facts'

/** Where facts go. A plain call: cheap, never throws, never blocks. */
export interface Journal {
  record(fact: Fact): void
}
