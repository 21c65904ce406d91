import type { DecisionRecord, Round } from '../domain/record'
import { recordModel, recordNode } from '../domain/record-keys'
import { becauseCode, decidingRound, isWaiting, lengthOf, retriedFrom } from './because'
import { bounded } from './bounds'
import { bestFirst, isChosen, numberText, rankText } from './ranking'

/** A longer value is cut: some clients refuse header blocks of more than a few KB. */
const MAX_VALUE = 512

export interface HeaderOptions {
  /** Adds the terms of the chosen candidate (`X-Fleet-Explain: 1`). */
  readonly explain?: boolean
}

/**
 * The `X-Fleet-*` headers of an answer as far as the record knows them when the answer begins. Values are printable
 * ASCII: whatever else stands in a name is percent-encoded.
 */
export const replyHeaders = (
  record: DecisionRecord,
  { explain = false }: HeaderOptions = {},
): Record<string, string> => {
  const round = decidingRound(record)
  const node = recordNode(record)
  const retries = record.outcome?.retries ?? record.failures.filter(({ retried }) => retried).length
  const headers: Record<string, string> = { 'X-Request-Id': printable(record.id) }
  if (node !== undefined) {
    headers['X-Fleet-Node'] = printable(node)
    headers['X-Fleet-Model'] = printable(recordModel(record))
  }
  headers['X-Fleet-Why'] = printable(whyText(record, round))
  if (node !== undefined) headers['X-Fleet-Residency'] = residencyOf(record, round)
  const score = round && scoreText(round)
  if (score !== undefined) headers['X-Fleet-Score'] = printable(score)
  const signals = explain && round ? signalsText(round) : undefined
  if (signals !== undefined) headers['X-Fleet-Signals'] = printable(signals)
  if (node !== undefined && (round?.decision.choice ?? 0) > 0)
    headers['X-Fleet-Fallback'] = printable(recordModel(record))
  if (retries > 0) headers['X-Fleet-Retries'] = String(retries)
  if (record.outcome?.thinkingExhausted) headers['X-Fleet-Warning'] = 'thinking_exhausted'
  headers['Server-Timing'] = timingText(record)
  return headers
}

const unprintable = /[^\x20-\x7e]/

/** Percent-encodes what is not printable ASCII; a broken surrogate becomes U+FFFD. */
export const printable = (value: string): string => {
  const text = bounded(value, MAX_VALUE)
  return unprintable.test(text)
    ? text.replace(/[^\x20-\x7e]+/g, (part) => encodeURIComponent(part.toWellFormed()))
    : text
}

/** The code, then what it is about: `retried; from=rig`, `fallback; from=smart`, `cold_load; evicts=gemma3:27b`. */
const whyText = (record: DecisionRecord, round: Round | undefined): string => {
  const code = becauseCode(record, round)
  if (code === 'retried') return `retried; from=${retriedFrom(record)?.node}`
  if (code === 'fallback') return `fallback; from=${record.models[0]}`
  const evicts = round?.decision.evicts ?? []
  return code === 'cold_load' && evicts.length > 0 ? `cold_load; evicts=${evicts.join(',')}` : code
}

const residencyOf = ({ outcome, phases }: DecisionRecord, round: Round | undefined): 'resident' | 'cold' =>
  outcome?.residency ??
  (round?.decision.kind === 'load' || phases.some(({ name }) => name === 'loading') ? 'cold' : 'resident')

/** `105; of=5; ranked=3; next=box-2:103`; ordered terms are joined by `/`. */
const scoreText = ({ nodes, decision, more }: Round): string | undefined => {
  const ranked = bestFirst(nodes, decision, 2)
  const chosen = ranked.find((verdict) => isChosen(verdict, decision))
  if (chosen === undefined) return undefined
  const next = ranked[0] === chosen ? ranked[1] : ranked[0]
  const moreRanked = more?.ranked ?? 0
  const rest = more === undefined ? 0 : Object.values(more.eliminated).reduce((sum, count) => sum + count, moreRanked)
  const score = `${rankText(chosen.rank)}; of=${nodes.length + rest}; ranked=${ranked.length + moreRanked}`
  return next === undefined ? score : `${score}; next=${next.node}:${rankText(next.rank)}`
}

const signalsText = (round: Round): string | undefined => {
  const chosen = bestFirst(round.nodes, round.decision).find((verdict) => isChosen(verdict, round.decision))
  return (
    chosen &&
    Object.entries(chosen.terms)
      .map(([name, value]) => `${name}=${typeof value === 'number' ? numberText(value) : value}`)
      .join(', ')
  )
}

const timingText = ({ phases }: DecisionRecord): string => {
  let placing = 0
  let waiting = 0
  let loading = 0
  for (const phase of phases) {
    if (phase.name === 'placing') placing += lengthOf(phase)
    else if (phase.name === 'loading') loading += lengthOf(phase)
    else if (isWaiting(phase)) waiting += lengthOf(phase)
  }
  return `placing;dur=${numberText(placing)}, waiting;dur=${numberText(waiting)}, loading;dur=${numberText(loading)}`
}
