import type { Writable } from '../domain/writable'
import type { FactOf } from '../domain/facts'
import type { Job } from '../domain/job'
import type { Decision, Eliminated, Verdict } from '../domain/placement'
import type { Attempt, DecisionRecord, Phase, Round } from '../domain/record'
import { decidingRound } from './because'
import { bounded, boundedList, pushBounded } from './bounds'
import { bestFirst } from './ranking'

const MAX_CANDIDATES = 8
const MAX_ROUNDS = 32
const MAX_PHASES = 64
const MAX_FAILURES = 16
const MAX_LIST = 16
const MAX_NAME = 256
const MAX_MESSAGE = 300

/** A record while its request runs: the same object that readers get, growing. */
export type Draft = Writable<Omit<DecisionRecord, 'rounds' | 'phases' | 'failures'>> & {
  readonly rounds: Writable<Round>[]
  readonly phases: Writable<Phase>[]
  readonly failures: Attempt[]
}

/** An empty record of a job that has just arrived. `version` is the router's. */
export const beginRecord = (job: Job, version: string): Draft => ({
  id: job.id,
  at: job.arrivedAt,
  asked: askedBy(job),
  models: boundedList(job.models, MAX_LIST, MAX_NAME),
  rounds: [],
  phases: [],
  failures: [],
  version,
})

const askedBy = (job: Job): DecisionRecord['asked'] => {
  const asked: Writable<DecisionRecord['asked']> = {
    model: bounded(job.asked, MAX_NAME),
    dialect: job.dialect,
    operation: job.operation,
    stream: job.stream,
    priority: job.priority,
    tags: boundedList(job.tags, MAX_LIST, MAX_NAME),
    promptTokens: job.promptTokens,
  }
  if (job.key !== undefined) asked.key = bounded(job.key, MAX_NAME)
  if (job.session !== undefined) asked.session = bounded(job.session, MAX_NAME)
  if (job.clientRequestId !== undefined) asked.clientRequestId = bounded(job.clientRequestId, MAX_NAME)
  return asked
}

/** Adds a placement round, or counts it when it says the same as the one before. */
export const addRound = (draft: Draft, fact: FactOf<'request.placed'>): void => {
  const kept = bestCandidates(fact.verdicts, fact.decision)
  const round: Writable<Round> = {
    atMs: sinceArrival(draft, fact.at),
    cause: fact.cause,
    policy: fact.policy,
    nodes: kept,
    decision: boundedDecision(fact.decision),
  }
  if (fact.estimate !== undefined) round.estimate = fact.estimate
  const more = countRest(fact.verdicts, kept)
  if (more) round.more = more
  const previous = draft.rounds.at(-1)
  if (previous && saysTheSame(previous, round)) previous.repeated = (previous.repeated ?? 0) + 1
  else pushBounded(draft.rounds, round, MAX_ROUNDS)
}

/** Opens a phase and closes the one before. */
export const addPhase = (draft: Draft, fact: FactOf<'request.phase'>): void => {
  const fromMs = sinceArrival(draft, fact.at)
  closePhase(draft, fromMs)
  const phase: Writable<Phase> = { name: fact.phase, fromMs }
  if (fact.node !== undefined) phase.node = fact.node
  if (fact.estimate !== undefined) phase.estimate = fact.estimate
  pushBounded(draft.phases, phase, MAX_PHASES)
}

/** Adds a failed attempt at a node. */
export const addFailure = (draft: Draft, { at, node, model, failure, retried }: FactOf<'attempt.failed'>): void => {
  const attempt: Attempt = {
    node,
    model,
    atMs: sinceArrival(draft, at),
    class: failure.class,
    message: bounded(failure.message, MAX_MESSAGE),
    ...(failure.status !== undefined && { status: failure.status }),
    bytes: failure.bytes,
    elapsedMs: failure.elapsedMs,
    retried,
  }
  pushBounded(draft.failures, attempt, MAX_FAILURES)
}

/** Closes the record with the request's one outcome. */
export const settle = (draft: Draft, { at, outcome, residency }: FactOf<'request.settled'>): void => {
  const totalMs = sinceArrival(draft, at)
  closePhase(draft, totalMs)
  if (draft.failures.length > 0) draft.failures.splice(0, Infinity, ...followed(draft.failures, outcome.retries))
  const settled: Writable<NonNullable<DecisionRecord['outcome']>> = { ...outcome, totalMs }
  if (outcome.message !== undefined) settled.message = bounded(outcome.message, MAX_MESSAGE)
  if (residency !== undefined) settled.residency = residency
  const stoodIn = outcome.ttftMs !== undefined && (decidingRound(draft)?.decision.choice ?? 0) > 0
  if (stoodIn && outcome.model !== undefined) settled.fallback = outcome.model
  draft.outcome = settled
}

/** Failures after which there was another attempt are marked; a last one may have found nobody to take over. */
const followed = (failures: readonly Attempt[], retries: number): readonly Attempt[] => {
  let left = retries
  return failures.map((failure) => (failure.retried && left-- <= 0 ? { ...failure, retried: false } : failure))
}

const closePhase = ({ phases }: Draft, toMs: number): void => {
  const open = phases[phases.length - 1]
  if (open && open.toMs === undefined) open.toMs = toMs
}

const sinceArrival = (draft: Draft, at: number): number => Math.max(0, Math.round((at - draft.at) * 100) / 100)

const boundedDecision = (decision: Decision): Decision =>
  decision.evicts && decision.evicts.length > MAX_LIST
    ? { ...decision, evicts: decision.evicts.slice(0, MAX_LIST) }
    : decision

/** As the policy gave them when there are few; else the best by rank, then eliminated ones as far as there is room. */
const bestCandidates = (verdicts: readonly Verdict[], decision: Decision): readonly Verdict[] => {
  if (verdicts.length <= MAX_CANDIDATES) return verdicts
  const ranked: Verdict[] = bestFirst(verdicts, decision, MAX_CANDIDATES).slice(0, MAX_CANDIDATES)
  const eliminated = verdicts.filter((verdict) => verdict.verdict === 'eliminated')
  return ranked.concat(eliminated.slice(0, MAX_CANDIDATES - ranked.length))
}

const countRest = (all: readonly Verdict[], kept: readonly Verdict[]): Round['more'] => {
  if (all.length === kept.length) return undefined
  const eliminated = new Map<string, number>()
  let ranked = 0
  const count = (verdict: Verdict, by: number): void => {
    if (verdict.verdict === 'ranked') ranked += by
    else eliminated.set(verdict.reason, (eliminated.get(verdict.reason) ?? 0) + by)
  }
  for (const verdict of all) count(verdict, 1)
  for (const verdict of kept) count(verdict, -1)
  return { ranked, eliminated: Object.fromEntries([...eliminated].filter(([, left]) => left > 0)) }
}

const saysTheSame = (a: Round, b: Round): boolean =>
  a.policy === b.policy &&
  a.decision.kind === b.decision.kind &&
  a.decision.node === b.decision.node &&
  a.decision.model === b.decision.model &&
  a.decision.reason === b.decision.reason &&
  a.nodes.length === b.nodes.length &&
  sameRest(a.more, b.more) &&
  a.nodes.every((verdict, i) => sameVerdict(verdict, b.nodes[i]))

const sameVerdict = (a: Verdict, b: Verdict | undefined): boolean =>
  a.node === b?.node && a.model === b.model && reasonOf(a) === reasonOf(b)

const reasonOf = (verdict: Verdict): Eliminated['reason'] | undefined =>
  verdict.verdict === 'eliminated' ? verdict.reason : undefined

const sameRest = (a: Round['more'], b: Round['more']): boolean => {
  if (a === undefined || b === undefined) return a === b
  const reasons = Object.entries(a.eliminated)
  return (
    a.ranked === b.ranked &&
    reasons.length === Object.keys(b.eliminated).length &&
    reasons.every(([reason, count]) => b.eliminated[reason] === count)
  )
}
