import type { Fact } from '../domain/facts'
import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import type { DecisionQuery, Decisions } from '../ports/decisions'
import { addFailure, addPhase, addRound, beginRecord, type Draft, settle } from './record-builder'
import type { Sink } from './journal'
import { createRecent } from './recent'
import { SlotMap } from '../domain/slot-map'

/** Where settled records outlive the process. `save` only takes the record; writing it is done later, in batches. */
export interface RecordStore extends Decisions {
  /** `text` is the record's JSON. */
  save(record: DecisionRecord, text: string): void
}

export interface DecisionsOptions {
  /** Of the router, written into each record. */
  readonly version: string
  readonly store?: RecordStore
  /** Settled records held in memory. */
  readonly keep?: number
}

/** The records that answers are just being made from; the others are text. */
const FRESH = 128

/** A settled record at rest: one text instead of some forty objects that every garbage collection would walk. */
interface Packed {
  readonly at: number
  readonly text: string
}

const unpacked = ({ text }: Packed): DecisionRecord => JSON.parse(text) as DecisionRecord

/** Builds the decision record of every request from facts, and answers for running, recent and stored ones. */
export const createDecisions = ({ version, store, keep = 2_000 }: DecisionsOptions): Decisions & Sink => {
  const running = new SlotMap<Draft>()
  /** In the order in which they settled. */
  const settled = createRecent<Packed>(keep)
  const fresh = createRecent<DecisionRecord>(Math.min(FRESH, keep))
  let newest: DecisionRecord | undefined

  const finish = (draft: Draft): void => {
    running.delete(draft.id)
    const text = JSON.stringify(draft)
    fresh.set(draft.id, draft)
    settled.set(draft.id, { at: draft.at, text })
    store?.save(draft, text)
  }

  const inMemory = (id: string): DecisionRecord | undefined => {
    const known = running.get(id) ?? fresh.get(id)
    if (known !== undefined) return known
    const packed = settled.get(id)
    return packed && unpacked(packed)
  }

  /** Those that match, newest first; no more of them is unpacked than it takes. */
  const matching = (query: DecisionQuery): DecisionRecord[] => {
    const found: DecisionRecord[] = []
    const newestFirst = [...running.values(), ...settled.values()].sort((a, b) => b.at - a.at)
    for (const one of newestFirst) {
      if (found.length === query.limit) break
      const record = 'text' in one ? unpacked(one) : one
      if (recordMatches(record, query)) found.push(record)
    }
    return found
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
    const recent = matching(query)
    if (!store || recent.length === query.limit) return recent
    const seen = new Set(recent.map(({ id }) => id))
    const older = store.list(query).filter(({ id }) => !seen.has(id))
    return [...recent, ...older].sort((a, b) => b.at - a.at).slice(0, query.limit)
  }

  return {
    name: 'decisions',
    hear,
    get: (id) => inMemory(id) ?? store?.get(id),
    last: () => newest ?? store?.last(),
    list,
  }
}
