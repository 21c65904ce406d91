import type { Estimate, PlacementCause } from '../../src/domain/facts'
import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate, Decision, Placement } from '../../src/domain/placement'
import { DEFAULT_COST, DEFAULT_SCORE } from '../../src/domain/score'
import { place } from '../../src/placement/place'
import { policyNamed } from '../../src/placement/policies'
import { queueLimitFor } from '../../src/placement/priority'
import { loadableNow } from '../../src/placement/eviction'
import { loadsByRequest, needsLoad, windowFor } from '../../src/placement/window'
import type { PolicyContext } from '../../src/placement/policies/policy'
import type { Entry } from '../../src/placement/room'
import { address } from '../protocol'
import { candidatesFor } from '../slates'
import { axesOf, candidateAt } from '../view'
import type { DispatcherContext, Turn } from './context'
import { beginByRequest, beginLoad } from './loads'
import { deadlineRefusal, estimateFor } from './deadline'
import { refusalFor, roomRefusal } from './refusals'
import { withGuard } from './guard'
import { isBatch, startable, withShare } from './share'
import { isTrial, orTrial } from './trial'

interface Asking {
  readonly job: Job
  readonly attempt: number
  readonly cause: PlacementCause
  readonly excluded: readonly string[]
}

/** Decisions after which a request is not in the waiting room any more. */
const LEAVING: ReadonlySet<Decision['kind']> = new Set(['start', 'load', 'bind'])

const policyContext = ({ samples, now, random, config }: DispatcherContext): PolicyContext => ({
  now: now(),
  serviceMs: ({ node, model }: Candidate) => samples.service(node.name, modelKey(model))?.meanMs,
  loadMs: ({ node, model, costGb }: Candidate) => samples.loadMs(node.name, modelKey(model), costGb)?.meanMs,
  p75Ms: ({ node, model }: Candidate) => samples.p75(node.name, modelKey(model)),
  nodeMeans: (node) => samples.nodeMeans(node),
  // Sessions are not kept in this version.
  sessionNode: () => undefined,
  random,
  score: config.score ?? DEFAULT_SCORE,
  cost: config.cost ?? DEFAULT_COST,
})

const evaluate = (context: DispatcherContext, { job, excluded }: Pick<Asking, 'job' | 'excluded'>) => {
  const { roster, ledger, config, samples } = context
  const candidates = withGuard(
    context,
    job,
    withShare(context, job, candidatesFor(job, roster, ledger, samples.parallelism)),
  )
  const policy = (job.policy === undefined ? undefined : policyNamed(job.policy)) ?? context.policy
  const queueLimit = queueLimitFor(config.limits.queuePerNode, job.priority, config.priorities)
  const placement = place(candidates, job, policy, policyContext(context), new Set(excluded), queueLimit)
  return { candidates, placement }
}

const tell = ({ context }: Turn, asking: Asking, placement: Placement, startedAt: number, estimate?: Estimate): void =>
  context.journal.record({
    type: 'request.placed',
    at: context.now(),
    request: asking.job.id,
    cause: asking.cause,
    attempt: asking.attempt,
    policy: placement.policy,
    verdicts: placement.verdicts,
    decision: placement.decision,
    ...(estimate === undefined
      ? {}
      : { estimate: { valueMs: estimate.valueMs, basis: estimate.basis, samples: estimate.samples } }),
    tookMs: context.precise() - startedAt,
  })

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
  const candidate = candidates.find((one) => one.node.name === node && one.model === model)
  if (candidate === undefined) return false
  const contextTokens = windowFor(candidate, job)
  const { arrivedAt, priority } = job
  const base = { request: job.id, attempt, arrivedAt, priority, residency: 'resident' as const }
  const entry = contextTokens === undefined ? base : { ...base, contextTokens }
  switch (decision.kind) {
    case 'start': {
      const batch = isBatch(context, job) ? { isBatch: true as const } : {}
      const since = context.now()
      context.ledger.reserve({ request: job.id, attempt, node, model, state: 'running', since, ...batch })
      context.ledger.chosen(node)
      const cold = loadsByRequest(candidate, context.now())
        ? { residency: 'cold' as const, loadMs: beginByRequest(turn, job.id, candidate) }
        : {}
      api.send(address.queues, { type: 'queue.enqueue', node, model, entry: { ...entry, ...cold, start: true } })
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
      api.send(address.queues, { type: 'queue.enqueue', node, model, entry: { ...entry, start: false } })
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
  const { job, attempt, excluded } = event
  const before = context.room.remove(job.id)
  const startedAt = context.precise()
  const { candidates, placement } = evaluate(context, event)
  const overtakes = before === undefined && context.room.hasElder(job, excluded)
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
  context.room.add(job, attempt, excluded, standing, reason, decided.decision.node)
  tellStanding(turn, job.id, standing, reason, decided.decision.node)
}

/** Tells a request that stands on a node without progress when another one would take it now; it then asks to be placed. */
export const tryElsewhere = ({ context, api }: Turn, { job, attempt, excluded }: Omit<Asking, 'cause'>): void => {
  const { decision } = evaluate(context, { job, excluded }).placement
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

/** Looks at the oldest of every group until one can be placed; then asks itself to look again, so each has its turn. */
export const look = (turn: Turn): void => {
  const { context, api } = turn
  if (startBound(turn)) return
  for (const head of context.room.heads()) {
    context.asking = head.job.id
    const startedAt = context.precise()
    const { candidates, placement: found } = evaluate(context, head)
    const placement = orTrial(context, head.job, candidates, found)
    const asking: Asking = { job: head.job, attempt: head.attempt, excluded: head.excluded, cause: 'freed' }
    const leaves = LEAVING.has(placement.decision.kind)
    if (leaves) context.room.remove(head.job.id)
    if (leaves && commit(turn, asking, placement, candidates)) {
      tell(turn, asking, placement, startedAt)
      context.looking = true
      api.send(api.self, { type: 'room.look' })
      return
    }
    restand(turn, head, placement, asking, startedAt)
  }
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

/** Nothing is started there now. */
const isAway = ({ health, admission, breaker }: Pick<Candidate, 'health' | 'admission' | 'breaker'>): boolean =>
  health === 'offline' || admission !== 'open' || breaker === 'open'

/** A node's bound requests are not sent back for a load more often than this, in ms. */
const LOAD_DUE_MS = 1_000

/** The node takes nothing now: whoever is bound to it asks again, somewhere else if it can. */
export const returnBound = ({ context, api }: Turn, node: string): void => {
  const member = context.roster.get(node)
  if (member === undefined || !isAway(axesOf(member))) return
  if (!context.ledger.boundQueues().some((queue) => queue.node === node)) return
  api.send(address.queues, { type: 'queues.return', node, reason: 'node_away' })
}

/** Promises free slots to bound requests; true when it did something. */
const startBound = ({ context, api }: Turn): boolean => {
  const { ledger, roster, samples } = context
  for (const { node, model } of ledger.boundQueues()) {
    const candidate = candidateAt(node, model, roster, ledger, samples.parallelism)
    const account = ledger.account(node, model)
    if (candidate === undefined || account.bound <= account.granted || isAway(candidate)) continue
    const { count, batch } = startable(context, candidate)
    if (count <= account.granted) continue
    const free = candidate.slots - account.reserved - account.granted - account.foreign
    const cap = candidate.breaker === 'half_open' ? 1 : (candidate.node.maxConcurrency ?? Number.POSITIVE_INFINITY)
    if (free <= 0 ? !isTrial(context, candidate) : candidate.nodeInFlight >= cap) continue
    if (needsLoad(candidate, {}, context.now())) {
      // The one that asks first takes the load upon itself.
      if (candidate.loading !== undefined || loadableNow(candidate, {}, context.now()) === undefined) continue
      if (context.now() - (context.loadDueAt.get(node) ?? 0) < LOAD_DUE_MS) continue
      context.loadDueAt.set(node, context.now())
      api.send(address.queues, { type: 'queues.return', node, reason: 'load_due' })
      return true
    }
    if (free <= 0) samples.parallelism.trying(node, model)
    ledger.grant(node, model)
    api.send(address.queues, { type: 'queue.start', node, model, batch })
    context.looking = true
    api.send(api.self, { type: 'room.look' })
    return true
  }
  return false
}

/** Every `rescore_every` each held request, oldest first, is told to ask again. */
export const tellHeld = ({ context, api }: Turn): void => {
  const now = context.now()
  if (now - context.lastRescoreAt < context.config.policy.rescoreEveryMs) return
  context.lastRescoreAt = now
  for (const entry of context.room.held()) api.send(address.request(entry.job.id), { type: 'hold.ticked' })
}
