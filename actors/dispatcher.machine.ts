import type { DispatcherContext, DispatcherInput, Turn } from './dispatcher/context'
import { adopt, beginByRequest, lose } from './dispatcher/loads'
import { returnBound } from './dispatcher/bound'
import { PolicyDesk } from './dispatcher/policy-desk'
import { arrive, look, tellHeld, tryElsewhere } from './dispatcher/turn'
import { isBatch } from './dispatcher/share'
import { forgetTurns } from './dispatcher/turns'
import { free, onReport, releaseSlot, settleLingering } from './dispatcher/slots'
import { sameModel } from '../src/domain/job'
import type { Writable } from '../src/domain/writable'
import { policyNamed } from '../src/placement/policies'
import { noTurns } from '../src/placement/turns'
import { loadsByRequest } from '../src/placement/window'
import { type Chart, flat } from './flat'
import { address, type DispatcherEvent } from './protocol'
import { candidateAt } from './view'

/** Chooses and reserves, one placement per turn; keeps whoever cannot be placed yet. The one writer of the ledger. */
export const dispatcherChart = {
  id: 'dispatcher',
  initial: 'ready',
  states: {
    ready: {
      on: {
        'request.place': { actions: ['place'] },
        'request.elsewhere': { actions: ['tryElsewhere'] },
        'room.look': { actions: ['look'] },
        'slot.freed': { actions: ['releaseSlot', 'lookAgain'] },
        'slot.taken': { actions: ['takeGrant'] },
        'slot.declined': { actions: ['dropGrant', 'lookAgain'] },
        'bound.gone': { actions: ['unbind', 'lookAgain'] },
        'queue.broke': { actions: ['loseQueue', 'lookAgain'] },
        'job.gone': { actions: ['dropJob', 'lookAgain'] },
        'load.finished': { actions: ['startLoaded', 'lookAgain'] },
        'load.failed': { actions: ['loseLoad', 'lookAgain'] },
        'load.lost': { actions: ['forgetLoad', 'lookAgain'] },
        'node.changed': { actions: ['returnBound', 'lookAgain'] },
        'node.reported': { actions: ['observe', 'lookAgain'] },
        'node.gone': { actions: ['loseNode', 'lookAgain'] },
        'dispatcher.configure': { actions: ['configure', 'lookAgain'] },
        'linger.ended': { actions: ['settleLingering', 'lookAgain'] },
      },
      // The fallback for whatever no event tells; held requests ask again on it.
      after: { tick: { target: 'ready', reenter: true, actions: ['age', 'settleLingering', 'tellHeld', 'lookAgain'] } },
    },
  },
} as const satisfies Chart

const TICK_MS = 1_000

type Of<T extends DispatcherEvent['type']> = Extract<DispatcherEvent, { type: T }>

const turn = (context: DispatcherContext, api: Turn['api']): Turn => ({ context, api })

export const dispatcherLogic = flat<DispatcherContext, DispatcherEvent, DispatcherInput>(dispatcherChart, {
  context: (input) => {
    const own = {
      loadDueAt: new Map(),
      turns: noTurns(),
      lastRescoreAt: input.now(),
      looking: false,
      asking: undefined,
    }
    // It reads the configuration from the context, which takes another one while it runs.
    const context: Writable<DispatcherContext> = Object.assign({ policyDesk: undefined as never }, input, own)
    context.policyDesk = new PolicyDesk(context)
    return context
  },
  delays: { tick: TICK_MS },
  actions: {
    place: (context, event, api) => {
      const asked = event as Of<'request.place'>
      context.asking = asked.job.id
      arrive(turn(context, api), asked)
      context.asking = undefined
    },
    tryElsewhere: (context, event, api) => tryElsewhere(turn(context, api), event as Of<'request.elsewhere'>),
    look: (context, _event, api) => {
      context.looking = false
      look(turn(context, api))
      context.asking = undefined
    },
    lookAgain: (context, _event, api) => {
      if (context.looking || (context.room.size === 0 && !context.ledger.hasBound())) return
      context.looking = true
      api.send(api.self, { type: 'room.look' })
    },
    releaseSlot: (context, event, api) => releaseSlot(turn(context, api), event as Of<'slot.freed'>),
    takeGrant: (context, event, api) => {
      const { ledger, boundBatch, now } = context
      const { node, model, request, attempt } = event as Of<'slot.taken'>
      const candidate = candidateAt(node, model, context.roster, ledger, context.samples.parallelism)
      const bound = boundBatch.get(request)
      const batch = bound !== undefined && isBatch(context, bound) ? { isBatch: true as const } : {}
      boundBatch.delete(request)
      ledger.settleGrant(node, model)
      ledger.unbind(node, model)
      ledger.reserve({ request, attempt, node, model, state: 'running', since: now(), ...batch })
      if (candidate !== undefined && loadsByRequest(candidate, now()))
        beginByRequest(turn(context, api), request, candidate)
    },
    dropGrant: ({ ledger }, event) => {
      const { node, model } = event as Of<'slot.declined'>
      ledger.settleGrant(node, model)
    },
    unbind: ({ ledger, boundBatch }, event) => {
      const { node, model, request } = event as Of<'bound.gone'>
      boundBatch.delete(request)
      ledger.unbind(node, model)
    },
    loseQueue: (context, event, api) => {
      const { queue, running } = event as Of<'queue.broke'>
      const { ledger, boundBatch } = context
      const still = new Set(running)
      ledger.unbindAll(queue)
      for (const [request, { node, model }] of boundBatch) {
        if (queue === undefined || (queue.node === node && sameModel(queue.model, model))) boundBatch.delete(request)
      }
      for (const { request, node, state } of queue === undefined
        ? ledger.reservations()
        : ledger.on(queue.node, queue.model)) {
        if (state !== 'running' || still.has(request)) continue
        free(turn(context, api), request)
        api.send(address.request(request), { type: 'queue.refused', node, reason: 'queue_restarted' })
      }
    },
    dropJob: (context, event, api) => {
      const { request } = event as Of<'job.gone'>
      context.room.remove(request)
      context.loading.delete(request)
      const held = free(turn(context, api), request)
      if (held?.state === 'running')
        api.send(address.queues, { type: 'queue.withdraw', node: held.node, model: held.model, request })
    },
    startLoaded: (context, event, api) => {
      const { node, model, tookMs } = event as Of<'load.finished'>
      adopt(turn(context, api), node, model, tookMs)
    },
    loseLoad: (context, event, api) => {
      const { node, message, unsent } = event as Of<'load.failed'>
      lose(turn(context, api), node, message, unsent)
    },
    forgetLoad: (context, event, api) => lose(turn(context, api), (event as Of<'load.lost'>).node, undefined),
    loseNode: (context, event, api) => {
      const { node } = event as Of<'node.gone'>
      lose(turn(context, api), node, undefined)
      context.ledger.forget(node)
      forgetTurns(context, node)
    },
    returnBound: (context, event, api) => returnBound(turn(context, api), (event as Of<'node.changed'>).node),
    configure: (context, event) => {
      const { config } = event as Of<'dispatcher.configure'>
      context.config = config
      context.policy = policyNamed(config.policy.use) ?? context.policy
      context.room.reorder()
    },
    observe: (context, event, api) => onReport(turn(context, api), event as Of<'node.reported'>),
    settleLingering: (context, _event, api) => settleLingering(turn(context, api)),
    age: ({ room }) => {
      if (room.size > 0) room.reorder()
    },
    tellHeld: (context, _event, api) => tellHeld(turn(context, api)),
  },
})
