import type { Fact } from '../domain/facts'
import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import type { DecisionQuery, Decisions } from '../ports/decisions'
import { addFailure, addPhase, addRound, beginRecord, type Draft, settle } from './record-builder'
import type { Sink } from './journal'
import { createRecentRecords } from './recent-records'
import { SlotMap } from '../domain/slot-map'

/** Where settled records outlive their request. `save` only takes the record; writing it is done later, in batches. */
export interface RecordStore extends Decisions {
  /** The record is settled: nothing changes it any more. From now on the store answers for it. */
  save(record: DecisionRecord): void
}

export interface DecisionsOptions {
  /** Of the router, written into each record. */
  readonly version: string
  /** Without one, the newest `keep` settled records are held in memory. */
  readonly store?: RecordStore
  readonly keep?: number
}

const newestFirst = (a: DecisionRecord, b: DecisionRecord): number => b.at - a.at

/** Builds the decision record of every request from facts, and answers for running, recent and stored ones. */
export const createDecisions = ({
  version,
  keep = 2_000,
  store = createRecentRecords(keep),
}: DecisionsOptions): Decisions & Sink => {
  const running = new SlotMap<Draft>()
  let newest: DecisionRecord | undefined

  const finish = (draft: Draft): void => {
    running.delete(draft.id)
    store.save(draft)
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
    const found: DecisionRecord[] = [...running.values()].filter((record) => recordMatches(record, query))
    return found.concat(store.list(query)).sort(newestFirst).slice(0, query.limit)
  }

  return {
    name: 'decisions',
    hear,
    get: (id) => running.get(id) ?? store.get(id),
    last: () => newest ?? store.last(),
    list,
  }
}
