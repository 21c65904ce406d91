import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate, Placement, Verdict } from '../../src/domain/placement'
import { pairOf } from '../../src/placement/filters/failed-before'
import type { Entry } from '../../src/placement/room'
import { isDue, isOnlyInUse, type NodeTurn, pushesOut, turnLimitMs, waitsForOthers } from '../../src/placement/turns'
import { loadsByRequest, needsLoad } from '../../src/placement/window'
import { candidateNamed } from '../slates'
import type { DispatcherContext } from './context'

type Desk = Pick<DispatcherContext, 'turns' | 'room' | 'ledger' | 'config' | 'now' | 'journal'>

/** From now on the load has to pay off before the next one that pushes it out. */
export const noteLoaded = ({ turns, now }: Pick<Desk, 'turns' | 'now'>, node: string, tookMs: number): void => {
  turns.lastLoads.set(node, { at: now(), tookMs })
  turns.gaveUp.delete(node)
}

/** The turn is the job's own, or it would have the same load. */
const isMine = ({ model, entry }: NodeTurn, candidate: Candidate, job: Job, now: number): boolean =>
  modelKey(candidate.model) === modelKey(model) &&
  (entry?.job.id === job.id || needsLoad(candidate, job, now) || loadsByRequest(candidate, now))

/** The candidates as this job may use them: where it is another model's turn, nothing more starts. */
export const withTurns = (
  { turns, room, now }: Desk,
  job: Job,
  candidates: readonly Candidate[],
): readonly Candidate[] => {
  if (turns.current.size === 0) return candidates
  return candidates.map((candidate) => {
    const turn = turns.current.get(candidate.node.name)
    if (turn === undefined || isMine(turn, candidate, job, now())) return candidate
    if (turn.entry !== undefined && room.goesBefore(job, turn.entry)) return candidate
    return { ...candidate, free: Math.min(candidate.free, 0), turnOf: turn.model }
  })
}

/** It is another model's turn there. */
export const isOthersTurn = ({ turns }: Pick<Desk, 'turns'>, { node, model }: Candidate): boolean => {
  const turn = turns.current.get(node.name)
  return turn !== undefined && modelKey(turn.model) !== modelKey(model)
}

const isOver = ({ room, ledger }: Desk, { node, model, entry }: NodeTurn): boolean => {
  if (ledger.loading(node) !== undefined) return true
  // One that is held asks again and again, and is another entry each time.
  if (entry !== undefined) return room.get(entry.job.id) === undefined
  const { bound, granted } = ledger.account(node, model)
  return bound <= granted
}

/** The node has left. */
export const forgetTurns = ({ turns }: Pick<Desk, 'turns'>, node: string): void => {
  turns.current.delete(node)
  turns.lastLoads.delete(node)
  turns.restUntil.delete(node)
  turns.gaveUp.delete(node)
}

/** Ends the turns whose load has begun, whose requests have left, or that took too long. */
export const settleTurns = (desk: Desk): void => {
  const { current, restUntil, gaveUp } = desk.turns
  for (const turn of current.values()) {
    const { node, since } = turn
    const before = gaveUp.get(node) ?? 0
    const limitMs = turnLimitMs(before)
    const isLate = desk.now() - since >= limitMs
    if (!isLate && !isOver(desk, turn)) continue
    current.delete(node)
    if (!isLate) continue
    restUntil.set(node, desk.now() + limitMs)
    gaveUp.set(node, before + 1)
  }
}

/** A load that pushes something out waits until it is due, as long as anything else can begin. */
export const isPutOff = (desk: Desk, job: Job, { decision }: Placement, candidates: readonly Candidate[]): boolean => {
  const { node, model, kind, evicts = [] } = decision
  const now = desk.now()
  const candidate = candidateNamed(candidates, node, model)
  if (candidate === undefined) return false
  const isLoad = kind === 'load' || (kind === 'start' && loadsByRequest(candidate, now))
  if (!isLoad || candidate.loading !== undefined || !pushesOut(candidate, evicts, now)) return false
  return !isDueAt(desk, candidate.node.name, job.arrivedAt)
}

/** The candidates behind those verdicts, in their order; of two thousand nodes each is looked up once. */
const behind = (verdicts: readonly Verdict[], candidates: readonly Candidate[]): Candidate[] => {
  const byPair = new Map(candidates.map((candidate) => [pairOf(candidate.node.name, candidate.model), candidate]))
  return verdicts.flatMap(({ node, model }) => byPair.get(pairOf(node, model)) ?? [])
}

/** Ruled out by its memory alone: others may be in the way only for now. */
const isShortOfMemory = (verdict: Verdict): boolean =>
  verdict.verdict === 'eliminated' && verdict.reason === 'memory_fit'

/** What others send there may never end. */
const isOurs = ({ ledger }: Pick<Desk, 'ledger'>, { node, model, inFlight }: Candidate): boolean =>
  inFlight > 0 || ledger.on(node.name).some((held) => modelKey(held.model) !== modelKey(model))

/**
 * No node can serve it at present, but one will as soon as what is in its memory has answered us: so it waits for a node, and
 * not for the fleet to change.
 */
export const orWait = (
  desk: Pick<Desk, 'now' | 'ledger'>,
  job: Job,
  candidates: readonly Candidate[],
  placement: Placement,
): Placement => {
  if (placement.decision.kind !== 'hold') return placement
  const short = placement.verdicts.filter(isShortOfMemory)
  if (short.length === 0) return placement
  const found = behind(short, candidates).find(
    (candidate) =>
      isOnlyInUse(candidate, job, desk.now()) && (candidate.loading !== undefined || isOurs(desk, candidate)),
  )
  if (found === undefined) return placement
  return { ...placement, decision: { kind: 'wait', node: found.node.name, model: found.model, reason: 'held' } }
}

/** Others have had the node for long enough. */
export const isDueAt = ({ turns, config, now }: Desk, node: string, since: number): boolean =>
  isDue(since, turns.lastLoads.get(node), config.policy.swapAfterMs, now())

const begin = (desk: Desk, turn: NodeTurn, waitedSince: number): void => {
  const { turns, journal, now } = desk
  turns.current.set(turn.node, turn)
  const { node, model } = turn
  journal.record({ type: 'turn.began', at: now(), node, model, waitedMs: now() - waitedSince })
}

/** The turn lets the job through, so it would keep the node free for nothing while the job waits for a load of its own. */
const yieldsTo = ({ room }: Desk, { entry }: NodeTurn, job: Job | undefined): boolean =>
  job !== undefined && entry !== undefined && room.goesBefore(job, entry)

/** A turn there, for something that has waited since then, can begin now; `job` is who waits, if it is not bound there. */
const mayBegin = (desk: Desk, candidate: Candidate, since: number, job?: Job): boolean => {
  const { turns, now } = desk
  const { name } = candidate.node
  const turn = turns.current.get(name)
  const isFree = turn === undefined || yieldsTo(desk, turn, job)
  return isFree && now() >= (turns.restUntil.get(name) ?? 0) && isDueAt(desk, name, since) && isOurs(desk, candidate)
}

/** Who has waited long enough for others to be idle gets the node where the fewest requests have to end first. */
export const takeTurn = (desk: Desk, entry: Entry, { verdicts }: Placement, candidates: readonly Candidate[]): void => {
  const { turns, now } = desk
  const { job } = entry
  if (now() - job.arrivedAt < desk.config.policy.swapAfterMs) return
  for (const turn of turns.current.values()) if (turn.entry?.job.id === job.id) return
  let best: Candidate | undefined
  const reachable = verdicts.filter((verdict) => verdict.verdict === 'ranked' || isShortOfMemory(verdict))
  for (const candidate of behind(reachable, candidates)) {
    // Somewhere the model is there, or on its way: it waits for that.
    if (!waitsForOthers(candidate, job, now())) {
      if (candidate.resident !== undefined || candidate.loading === candidate.model) return
      continue
    }
    if (!mayBegin(desk, candidate, job.arrivedAt, job)) continue
    if (best === undefined || candidate.nodeInFlight < best.nodeInFlight) best = candidate
  }
  if (best === undefined) return
  begin(desk, { node: best.node.name, model: best.model, since: now(), entry }, job.arrivedAt)
}

/** The same for those who are bound to the candidate's queue. */
export const takeBoundTurn = (desk: Desk, candidate: Candidate): void => {
  const { now } = desk
  const { model } = candidate
  const node = candidate.node.name
  if (!waitsForOthers(candidate, {}, now())) return
  const since = blockedSince(desk, candidate)
  if (mayBegin(desk, candidate, since)) begin(desk, { node, model, since: now() }, since)
}

/** Since when the candidate's queue has been seen to wait for a load. */
export const blockedSince = ({ turns, now }: Desk, { node, model }: Candidate): number => {
  const key = pairOf(node.name, model)
  const since = turns.blockedSince.get(key) ?? now()
  turns.blockedSince.set(key, since)
  return since
}

/** The candidate's queue waits for no load any more. */
export const forgetBlocked = ({ turns }: Pick<Desk, 'turns'>, { node, model }: Candidate): void => {
  if (turns.blockedSince.size > 0) turns.blockedSince.delete(pairOf(node.name, model))
}

type Queues = ReturnType<Desk['ledger']['boundQueues']>

/** Of several that wait for a load, the one that has done so for longest has it. */
export const longestBlockedFirst = ({ turns: { blockedSince } }: Pick<Desk, 'turns'>, queues: Queues): Queues => {
  if (blockedSince.size < 2) return queues
  const sinceOf = ({ node, model }: Queues[number]): number =>
    blockedSince.get(pairOf(node, model)) ?? Number.MAX_SAFE_INTEGER
  return [...queues].sort((a, b) => sinceOf(a) - sinceOf(b))
}

/** Queues with nobody bound wait for nothing. */
export const forgetUnbound = ({ turns }: Pick<Desk, 'turns'>, queues: Queues): void => {
  if (turns.blockedSince.size === 0) return
  const bound = new Set(queues.map(({ node, model }) => pairOf(node, model)))
  for (const key of turns.blockedSince.keys()) if (!bound.has(key)) turns.blockedSince.delete(key)
}
