import type { Estimate, FactOf, PlacementCause } from '../../src/domain/facts'
import type { Candidate, Decision, Placement } from '../../src/domain/placement'
import type { Writable } from '../../src/domain/writable'
import { place } from '../../src/placement/place'
import { policyNamed } from '../../src/placement/policies'
import { queueLimitFor } from '../../src/placement/priority'
import { loadableNow } from '../../src/placement/eviction'
import { loadsByRequest, windowFor } from '../../src/placement/window'
import type { Reservation } from '../../src/placement/ledger'
import type { Asker, Entry } from '../../src/placement/room'
import { address, type QueueEntry } from '../protocol'
import { candidateNamed, candidatesFor } from '../slates'
import { startBound } from './bound'
import type { DispatcherContext, Turn } from './context'
import { beginByRequest, beginLoad } from './loads'
import { deadlineRefusal, estimateFor } from './deadline'
import { refusalFor, roomRefusal } from './refusals'
import { withGuard } from './guard'
import { isBatch, withShare } from './share'
import { orTrial } from './trial'
import { isPutOff, orWait, settleTurns, takeTurn, withTurns } from './turns'
import { withUnreached } from './unreached'

interface Asking extends Asker {
  readonly cause: PlacementCause
}

/** Decisions after which a request is not in the waiting room any more. */
const LEAVING: ReadonlySet<Decision['kind']> = new Set(['start', 'load', 'bind'])

const NOBODY: ReadonlySet<string> = new Set()

const evaluate = (context: DispatcherContext, { job, excluded, unreached }: Omit<Asker, 'attempt'>) => {
  const { roster, ledger, config, samples, policyDesk } = context
  const all = candidatesFor(job, roster, ledger, samples.parallelism)
  const usable = withUnreached(roster, unreached, withGuard(context, job, withShare(context, job, all)))
  const candidates = withTurns(context, job, usable)
  const policy = (job.policy === undefined ? undefined : policyNamed(job.policy)) ?? context.policy
  const queueLimit = queueLimitFor(config.limits.queuePerNode, job.priority, config.priorities)
  const without = excluded.length === 0 ? NOBODY : new Set(excluded)
  const placement = place(candidates, job, policy, policyDesk.at(context.now()), without, queueLimit)
  return { candidates, placement: orWait(context, job, candidates, placement) }
}

const tell = (
  { context }: Turn,
  asking: Asking,
  placement: Placement,
  startedAt: number,
  estimate?: Estimate,
): void => {
  const fact: Writable<FactOf<'request.placed'>> = {
    type: 'request.placed',
    at: context.now(),
    request: asking.job.id,
    cause: asking.cause,
    attempt: asking.attempt,
    policy: placement.policy,
    verdicts: placement.verdicts,
    decision: placement.decision,
    tookMs: context.precise() - startedAt,
  }
  if (estimate !== undefined)
    fact.estimate = { valueMs: estimate.valueMs, basis: estimate.basis, samples: estimate.samples }
  context.journal.record(fact)
}

/** Reserves what the decision says, in this turn; true when the request left the waiting room for good. */
const commit = (
  turn: Turn,
  { job, attempt }: Asking,
  { decision }: Placement,
  candidates: readonly Candidate[],
): boolean => {
  const { context, api } = turn
  const { node, model } = decision
  if (node === undefined || model === undefined) return false
  const candidate = candidateNamed(candidates, node, model)
  if (candidate === undefined) return false
  const contextTokens = windowFor(candidate, job)
  const { arrivedAt, priority } = job
  const entry: Writable<QueueEntry> = {
    request: job.id,
    attempt,
    arrivedAt,
    priority,
    start: decision.kind === 'start',
    residency: 'resident',
  }
  if (contextTokens !== undefined) entry.contextTokens = contextTokens
  switch (decision.kind) {
    case 'start': {
      const since = context.now()
      const claim: Writable<Reservation> = { request: job.id, attempt, node, model, state: 'running', since }
      if (isBatch(context, job)) claim.isBatch = true
      context.ledger.reserve(claim)
      context.ledger.chosen(node)
      if (loadsByRequest(candidate, since)) {
        entry.residency = 'cold'
        entry.loadMs = beginByRequest(turn, job.id, candidate)
      }
      api.send(address.queues, { type: 'queue.enqueue', node, model, entry })
      return true
    }
    case 'bind': {
      const evicts = candidate.free > 0 ? loadableNow(candidate, job, context.now()) : undefined
      if (evicts !== undefined) {
        beginLoad(turn, job, attempt, candidate, evicts)
        return true
      }
      context.ledger.bind(node, model)
      if (priority === 'batch') context.boundBatch.set(job.id, { node, model, priority, arrivedAt })
      context.ledger.chosen(node)
      api.send(address.request(job.id), { type: 'placement.bound', node, model })
      api.send(address.queues, { type: 'queue.enqueue', node, model, entry })
      api.send(api.self, { type: 'room.look' })
      return true
    }
    case 'load':
      beginLoad(turn, job, attempt, candidate, decision.evicts ?? [])
      return true
    default:
      return false
  }
}

/** A request asks where to go: the answer is reserved before anybody else is heard. */
export const arrive = (turn: Turn, event: Asking & { readonly type: 'request.place' }): void => {
  const { context, api } = turn
  const { job, excluded } = event
  const before = context.room.remove(job.id)
  const startedAt = context.precise()
  const { candidates, placement } = evaluate(context, event)
  const overtakes = before === undefined && context.room.hasElder(event)
  const decided: Placement =
    overtakes && placement.decision.kind !== 'hold'
      ? { ...placement, decision: { ...placement.decision, kind: 'wait', reason: 'held' } }
      : orTrial(context, job, candidates, placement)

  const estimate = job.deadlineAt === undefined ? undefined : estimateFor(context, job, candidates, placement)
  const tooLate = deadlineRefusal(context, job, estimate)
  if (tooLate !== undefined) {
    tell(turn, event, { ...decided, decision: { kind: 'hold', reason: 'held' } }, startedAt, estimate)
    api.send(address.request(job.id), { type: 'placement.refused', error: tooLate })
    return
  }
  if (commit(turn, event, decided, candidates)) {
    tell(turn, event, decided, startedAt, estimate)
    return
  }
  const standing = decided.decision.kind === 'hold' ? 'held' : 'waiting'
  const refusal =
    (standing === 'held' ? refusalFor(context, job, decided, candidates, excluded) : undefined) ??
    roomRefusal(context, job, candidates, decided)
  if (refusal !== undefined) {
    tell(turn, event, decided, startedAt, estimate)
    api.send(address.request(job.id), { type: 'placement.refused', error: refusal })
    return
  }
  tell(turn, event, decided, startedAt, estimate)
  const reason = reasonOf(decided)
  context.room.add(event, standing, reason, decided.decision.node)
  tellStanding(turn, job.id, standing, reason, decided.decision.node)
}

/** Tells a request that stands on a node without progress when another one would take it now; it then asks to be placed. */
export const tryElsewhere = ({ context, api }: Turn, asker: Asker): void => {
  const { job, attempt } = asker
  const { decision } = evaluate(context, asker).placement
  if (LEAVING.has(decision.kind)) api.send(address.request(job.id), { type: 'placement.elsewhere', attempt })
}

/** Why nothing can be done now: the commonest reason among the eliminated, else that everything suitable is busy. */
const reasonOf = ({ decision, verdicts }: Placement): string => {
  if (decision.kind !== 'hold') return 'busy'
  const first = verdicts.find((verdict) => verdict.verdict === 'eliminated')
  return first?.verdict === 'eliminated' ? first.reason : 'model_absent'
}

const tellStanding = (
  { api }: Turn,
  request: string,
  standing: 'held' | 'waiting',
  reason: string,
  node: string | undefined,
): void =>
  api.send(
    address.request(request),
    standing === 'held'
      ? { type: 'placement.held', reason }
      : { type: 'placement.waiting', reason, ...(node === undefined ? {} : { node }) },
  )

/**
 * Looks at the oldest of every group until one can be placed; then asks itself to look again, so each has its turn. A load
 * that would push out another model goes behind everything that can begin without one, until it is due.
 */
export const look = (turn: Turn): void => {
  const { context } = turn
  settleTurns(context)
  if (startBound(turn)) return
  let putOff: (() => boolean) | undefined
  for (const head of context.room.heads()) {
    context.asking = head.job.id
    const startedAt = context.precise()
    const { candidates, placement: found } = evaluate(context, head)
    const placement = orTrial(context, head.job, candidates, found)
    const { job, attempt, excluded, unreached } = head
    const asking: Writable<Asking> = { job, attempt, excluded, cause: 'freed' }
    if (unreached !== undefined) asking.unreached = unreached
    if (LEAVING.has(placement.decision.kind)) {
      const go = (): boolean => leave(turn, asking, placement, candidates, startedAt)
      if (isPutOff(context, head.job, placement, candidates)) putOff ??= go
      else if (go()) return
      continue
    }
    restand(turn, head, placement, asking, startedAt)
    takeTurn(context, head, placement, candidates)
  }
  putOff?.()
}

/** Out of the waiting room; whoever is there has the next look. */
const leave = (
  turn: Turn,
  asking: Asking,
  placement: Placement,
  candidates: readonly Candidate[],
  startedAt: number,
): boolean => {
  const { context, api } = turn
  context.asking = asking.job.id
  if (!commit(turn, asking, placement, candidates)) return false
  context.room.remove(asking.job.id)
  tell(turn, asking, placement, startedAt)
  context.looking = true
  api.send(api.self, { type: 'room.look' })
  return true
}

/** A request that still waits may do so for another reason than before; the whole group shares it. */
const restand = (turn: Turn, head: Entry, placement: Placement, asking: Asking, startedAt: number): void => {
  const standing = placement.decision.kind === 'hold' ? 'held' : 'waiting'
  const reason = reasonOf(placement)
  if (head.standing === standing && head.reason === reason && head.tentative === placement.decision.node) return
  tell(turn, asking, placement, startedAt)
  for (let entry: Entry | undefined = head; entry !== undefined; entry = entry.next) {
    const moved = entry.standing !== standing
    turn.context.room.setStanding(entry, standing, reason, placement.decision.node)
    if (moved) tellStanding(turn, entry.job.id, standing, reason, placement.decision.node)
  }
}

/** Every `rescore_every` each held request, oldest first, is told to ask again. */
export const tellHeld = ({ context, api }: Turn): void => {
  const now = context.now()
  if (now - context.lastRescoreAt < context.config.policy.rescoreEveryMs) return
  context.lastRescoreAt = now
  for (const entry of context.room.held()) api.send(address.request(entry.job.id), { type: 'hold.ticked' })
}
