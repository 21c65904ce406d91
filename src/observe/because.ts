import { sameModel } from '../domain/job'
import type { Decision, Eliminated } from '../domain/placement'
import type { Attempt, DecisionRecord, Phase, Round } from '../domain/record'
import { isRanked } from './ranking'
import { counted, duration, enumerate, predicate } from './words'

const CODES = [
  'resident',
  'recent',
  'session',
  'only_candidate',
  'idle',
  'cold_load',
  'fallback',
  'held',
  'lent',
  'moved',
  'retried',
  'pinned',
  'guardian',
] as const

/** Why a request is where it is. Closed: these are label values, header values and filter values. */
export type BecauseCode = (typeof CODES)[number]

export interface Because {
  readonly code: BecauseCode
  /** For people: no capital, no full stop, names as the nodes write them. */
  readonly sentence: string
}

/** Nodes named one by one in a sentence; the rest is a number. */
const NAMED = 3
/** So many of the others are named beside the one that was chosen. */
const NAMED_BESIDE = 2
/** Shorter waits are not worth a word. */
const NOTABLE_MS = 100

/** The one-line reason of the placement that counts: the last one that put the request on a node, else the last one. */
export const because = (record: DecisionRecord): Because => {
  const round = decidingRound(record)
  const placed = placedIn(record, round)
  if (placed === undefined) return { code: 'held', sentence: whyHeld(record, round) }
  const code = codeOf(placed)
  return { code, sentence: SENTENCES[code](placed) + afterWaiting(record.phases) }
}

/** The code alone, for every answer's headers. */
export const becauseCode = (record: DecisionRecord, round = decidingRound(record)): BecauseCode => {
  const placed = placedIn(record, round)
  return placed === undefined ? 'held' : codeOf(placed)
}

const placedIn = (record: DecisionRecord, round: Round | undefined): Placed | undefined =>
  round?.decision.node === undefined || !isPlacing(round.decision)
    ? undefined
    : { record, round, node: round.decision.node, model: round.decision.model ?? record.asked.model }

/** The round that `because` speaks of. */
export const decidingRound = ({ rounds, phases }: DecisionRecord): Round | undefined => {
  // Whoever is on hold has lost the place that an earlier round gave it.
  if (phases.at(-1)?.name === 'held') return rounds.at(-1)
  for (let i = rounds.length - 1; i >= 0; i--) {
    const round = rounds[i]
    if (round !== undefined && isPlacing(round.decision)) return round
  }
  return rounds.at(-1)
}

/** The failure that sent the request elsewhere, if one did. */
export const retriedFrom = ({ failures }: DecisionRecord): Attempt | undefined =>
  failures.length === 0 ? undefined : failures.findLast(({ retried }) => retried)

interface Placed {
  readonly record: DecisionRecord
  readonly round: Round
  readonly node: string
  readonly model: string
}

/** A wait or a hold may name a node too, but puts nothing there. */
export const isPlacing = ({ kind }: Decision): boolean => kind === 'start' || kind === 'load' || kind === 'bind'

const codes: ReadonlySet<string> = new Set(CODES)
const isCode = (reason: string): reason is BecauseCode => codes.has(reason)

/** A retry or another model says more than how the node was found; then the policy's own reason counts. */
const codeOf = ({ record, round, node, model }: Placed): BecauseCode => {
  const failed = retriedFrom(record)
  // Where the node itself failed and no other took over, its own placement is still the one that counts.
  if (failed && failed.node !== node) return 'retried'
  const first = record.models[0]
  // With nothing to fall back to, another name is an alias that the node has for the same model.
  if (first !== undefined && record.models.length > 1 && !sameModel(first, model)) return 'fallback'
  if (isCode(round.decision.reason)) return round.decision.reason
  if (round.decision.kind === 'load') return 'cold_load'
  return rankedCount(round) === 1 ? 'only_candidate' : 'resident'
}

const SENTENCES: Readonly<Record<BecauseCode, (placed: Placed) => string>> = {
  resident: ({ round, node, model }) =>
    `${node} has ${model} in memory${slot(round.decision)}, the best of ${counted(rankedCount(round), 'candidate')}`,
  recent: ({ node, model }) => `${node} had ${model} in memory a moment ago`,
  session: ({ node }) => `${node} answered this conversation before and may still hold its beginning`,
  only_candidate: ({ round, node, model }) => `${node} is the only node that can serve ${model} now${lost(round)}`,
  idle: ({ node }) => `${node} had nothing else to do`,
  cold_load: ({ round, node, model }) => whyCold(round, node, model),
  fallback: ({ record, node, model }) => `${record.models[0]} could not be served now, ${model} on ${node} stands in`,
  held: ({ node, model }) => `${node} can serve ${model} now`,
  lent: ({ node }) => `${node} answers sooner than the queue where it waited`,
  moved: ({ node }) => `it was moved to ${node} while it waited`,
  retried: ({ record, node }) => `${failedBefore(record)}, so ${node} took it`,
  pinned: ({ node }) => `the request asked for ${node}`,
  guardian: ({ node, model }) => `${node} keeps ${model} for this kind of request`,
}

const failedBefore = (record: DecisionRecord): string => {
  const last = retriedFrom(record)
  return last
    ? `${last.node} failed after ${duration(last.elapsedMs)} (${last.class}: ${last.message})`
    : 'another failed'
}

/** Whoever joins a queue may find every slot taken. */
const slot = ({ kind }: Decision): string => (kind === 'bind' ? '' : ' and a free slot')

/** Nodes that were ruled out may have it in memory, and so may those that a score puts behind. */
const whyCold = (round: Round, node: string, model: string): string => {
  const drops = evicting(round.decision)
  const ranked = rankedCount(round)
  if (round.decision.kind === 'bind')
    return `${node} loads ${model}${drops}, the best of ${counted(ranked, 'candidate')}`
  if (ranked > 1 || lost(round) === '') return `no free slot has ${model} in memory, so ${node} loads it${drops}`
  return `${node} loads ${model}${drops} as the only node that can serve it now${lost(round)}`
}

const evicting = ({ evicts }: Decision): string =>
  evicts && evicts.length > 0 ? ` and drops ${enumerate(evicts.slice(0, NAMED))} for it` : ''

const lost = (round: Round): string => {
  const rest = restEliminated(round)
  const count = eliminatedOf(round).length + rest
  if (count === 0) return ''
  return rest === 0 && count <= NAMED_BESIDE ? `: ${ruledOut(round)}` : `: ${counted(count, 'other')} eliminated`
}

const afterWaiting = (phases: readonly Phase[]): string => {
  let waited = 0
  for (const phase of phases) if (isWaiting(phase)) waited += lengthOf(phase)
  return waited < NOTABLE_MS ? '' : `, after ${duration(waited)} of waiting`
}

/** Without a slot, whether or not a node is known yet. */
export const isWaiting = ({ name }: Phase): boolean => name === 'held' || name === 'waiting'

/** In ms; an open phase has no length yet. */
export const lengthOf = ({ fromMs, toMs }: Phase): number => (toMs === undefined ? 0 : toMs - fromMs)

const whyHeld = (record: DecisionRecord, round: Round | undefined): string => {
  if (!round) return record.outcome?.message ?? 'it was not placed'
  const { decision } = round
  if (decision.kind === 'wait') {
    const { node, model = record.asked.model } = decision
    const turn = turnOn(round, node)
    if (turn !== undefined) return `waits while ${node} makes room for ${turn}`
    if (rankedCount(round) === 0) return `waits until what is in memory has answered: ${ruledOut(round)}`
    const likeliest = round.nodes.filter(isRanked).find((verdict) => verdict.node === node && verdict.model === model)
    const busyWith = likeliest?.terms.busy_with
    if (node !== undefined && busyWith !== undefined) return `${node} loads ${model} once it is done with ${busyWith}`
    const where = node === undefined ? '' : `, ${node} probably first`
    return `waits for a free slot on ${counted(rankedCount(round), 'node')} that can serve it${where}`
  }
  if (eliminatedOf(round).length === 0) return `no node has ${record.asked.model}`
  return `no node can serve ${record.asked.model} now: ${ruledOut(round)}`
}

/** The first few, and how many more. */
const ruledOut = (round: Round): string => {
  const named = eliminatedOf(round)
    .slice(0, NAMED)
    .map((eliminated) => `${eliminated.node} ${predicate(eliminated)}`)
  const rest = eliminatedOf(round).length - named.length + restEliminated(round)
  return `${named.join('; ')}${rest > 0 ? `; ${counted(rest, 'other')}` : ''}`
}

/** The model whose turn it is on the node. */
const turnOn = ({ nodes }: Round, node: string | undefined): string | undefined => {
  const turn = nodes.filter(isRanked).find((verdict) => verdict.node === node)?.terms.turn_of
  return turn === undefined ? undefined : String(turn)
}

const eliminatedOf = (round: Round): readonly Eliminated[] =>
  round.nodes.filter((verdict): verdict is Eliminated => verdict.verdict === 'eliminated')

const restEliminated = ({ more }: Round): number =>
  more ? Object.values(more.eliminated).reduce((sum, count) => sum + count, 0) : 0

const rankedCount = ({ nodes, more }: Round): number => nodes.filter(isRanked).length + (more?.ranked ?? 0)
