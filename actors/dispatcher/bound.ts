import type { Candidate } from '../../src/domain/placement'
import { isAtRisk, loadableNow } from '../../src/placement/eviction'
import { pushesOut } from '../../src/placement/turns'
import { isIdleForRequest, loadsByRequest, needsLoad } from '../../src/placement/window'
import { address } from '../protocol'
import { axesOf, candidateAt } from '../view'
import type { Turn } from './context'
import { loadDeadlineMs } from './loads'
import { startable } from './share'
import { isTrial } from './trial'
import {
  blockedSince,
  forgetBlocked,
  forgetUnbound,
  isDueAt,
  isOthersTurn,
  longestBlockedFirst,
  takeBoundTurn,
} from './turns'

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

/** Sends back those who are bound to the model there, so that the one that asks first takes the load upon itself. */
const beginDue = ({ context, api }: Turn, { node: { name: node }, model }: Candidate): boolean => {
  if (context.now() - (context.loadDueAt.get(node) ?? 0) < LOAD_DUE_MS) return false
  context.loadDueAt.set(node, context.now())
  api.send(address.queues, { type: 'queues.return', node, model, reason: 'load_due' })
  return true
}

/** Its model is not there. */
const isBlocked = (candidate: Candidate, now: number): boolean =>
  needsLoad(candidate, {}, now) || loadsByRequest(candidate, now)

/** Promises a slot to the first who is bound there; it may be the one for which the engine loads the model. */
const start = (turn: Turn, candidate: Candidate, batch: boolean): void => {
  const { context, api } = turn
  const { model } = candidate
  const node = candidate.node.name
  context.ledger.grant(node, model)
  const isCold = loadsByRequest(candidate, context.now())
  const load = isCold ? { loadMs: loadDeadlineMs(turn, candidate) } : {}
  api.send(address.queues, { type: 'queue.start', node, model, batch, ...load })
  context.looking = true
  api.send(api.self, { type: 'room.look' })
}

/**
 * Promises free slots to bound requests; true when it did something. A load that would push out another model goes behind
 * everything that can begin without one, until it is due.
 */
export const startBound = (turn: Turn): boolean => {
  const { context } = turn
  const { ledger, roster, samples } = context
  let putOff: (() => boolean) | undefined
  const queues = ledger.boundQueues()
  forgetUnbound(context, queues)
  for (const { node, model } of longestBlockedFirst(context, queues)) {
    const candidate = candidateAt(node, model, roster, ledger, samples.parallelism)
    const account = ledger.account(node, model)
    if (candidate === undefined || account.bound <= account.granted || isAway(candidate)) continue
    if (!isBlocked(candidate, context.now())) forgetBlocked(context, candidate)
    if (isOthersTurn(context, candidate)) continue
    const { count, batch } = startable(context, candidate)
    if (count <= account.granted) continue
    takeBoundTurn(context, candidate)
    const free = candidate.slots - account.reserved - account.granted - account.foreign
    const cap = candidate.breaker === 'half_open' ? 1 : (candidate.node.maxConcurrency ?? Number.POSITIVE_INFINITY)
    if (free <= 0 ? !isTrial(context, candidate) : candidate.nodeInFlight >= cap) continue
    if (needsLoad(candidate, {}, context.now())) {
      const evicts = candidate.loading === undefined ? loadableNow(candidate, {}, context.now()) : undefined
      if (evicts === undefined) continue
      const isDue = isDueAt(context, node, blockedSince(context, candidate))
      if (pushesOut(candidate, evicts, context.now()) && !isDue) putOff ??= () => beginDue(turn, candidate)
      else if (beginDue(turn, candidate)) return true
      continue
    }
    if (isAtRisk(candidate)) continue
    if (loadsByRequest(candidate, context.now())) {
      if (!isIdleForRequest(candidate)) continue
      const isDue = isDueAt(context, node, blockedSince(context, candidate))
      if (pushesOut(candidate, [], context.now()) && !isDue) {
        putOff ??= () => {
          start(turn, candidate, batch)
          return true
        }
        continue
      }
    }
    if (free <= 0) samples.parallelism.trying(node, model)
    start(turn, candidate, batch)
    return true
  }
  return putOff?.() ?? false
}
