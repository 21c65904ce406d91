import type { Fact } from '../domain/facts'
import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import type { DecisionQuery, Decisions } from '../ports/decisions'
import { addFailure, addPhase, addRound, beginRecord, type Draft, settle } from './record-builder'
import type { Sink } from './journal'

/** Where settled records outlive the process. `save` only takes the record; writing it is done later, in batches. */
export interface RecordStore extends Decisions {
  save(record: DecisionRecord): void
}

export interface DecisionsOptions {
  /** Of the router, written into each record. */
  readonly version: string
  readonly store?: RecordStore
  /** Settled records held in memory. */
  readonly keep?: number
}

/** Builds the decision record of every request from facts, and answers for running, recent and stored ones. */
export const createDecisions = ({ version, store, keep = 2_000 }: DecisionsOptions): Decisions & Sink => {
  const running = new Map<string, Draft>()
  /** In the order in which they settled. */
  const settled = new Map<string, DecisionRecord>()
  let newest: DecisionRecord | undefined

  const finish = (draft: Draft): void => {
    running.delete(draft.id)
    settled.set(draft.id, draft)
    if (settled.size > keep) {
      const oldest = settled.keys().next()
      if (!oldest.done) settled.delete(oldest.value)
    }
    store?.save(draft)
  }

  const hear = (fact: Fact): void => {
    if (fact.type === 'request.arrived') {
      const draft = beginRecord(fact.job, version)
      running.set(draft.id, draft)
      newest = draft
      return
    }
    if (!('request' in fact)) return
    const draft = running.get(fact.request)
    if (!draft) return
    switch (fact.type) {
      case 'request.placed':
        addRound(draft, fact)
        break
      case 'request.phase':
        addPhase(draft, fact)
        break
      case 'attempt.failed':
        addFailure(draft, fact)
        break
      case 'request.settled':
        settle(draft, fact)
        finish(draft)
        break
    }
  }

  const list = (query: DecisionQuery): DecisionRecord[] => {
    const inMemory = [...running.values(), ...settled.values()]
      .filter((record) => recordMatches(record, query))
      .sort((a, b) => b.at - a.at)
      .slice(0, query.limit)
    if (!store || inMemory.length === query.limit) return inMemory
    const seen = new Set(inMemory.map(({ id }) => id))
    const older = store.list(query).filter(({ id }) => !seen.has(id))
    return [...inMemory, ...older].sort((a, b) => b.at - a.at).slice(0, query.limit)
  }

  return {
    name: 'decisions',
    hear,
    get: (id) => running.get(id) ?? settled.get(id) ?? store?.get(id),
    last: () => newest ?? store?.last(),
    list,
  }
}
