import type { AnyActorRef } from 'xstate'
import { type Running, retryAfterSeconds } from '../src/learning/retry-after'
import type { Journal } from '../src/ports/journal'
import { type Api, type Chart, flat } from './flat'
import {
  address,
  type DispatcherEvent,
  type QueueEvent,
  type QueuesEvent,
  type RequestEvent,
  type RequestsEvent,
} from './protocol'
import { admit, type Doors } from './request/admission'
import type { RequestContext, RequestPorts } from './request/context'
import { settledFact } from './request/outcome'
import { requestLogic } from './request.machine'
import { adopt, spawn } from './spawn'
import type { KeyLimits } from '../src/placement/key-limits'
import { sameModel } from '../src/domain/job'
import { RouterError, statusOf } from '../src/domain/errors'
import type { Outcome } from '../src/domain/facts'
import type { SlotMap } from '../src/domain/slot-map'

export interface RequestsContext {
  /** Every live request by its address. */
  readonly registry: SlotMap<AnyActorRef>
  /** Replaced whole when the configuration is; a request keeps those that it began with. */
  ports: RequestPorts
  readonly journal: Journal
  limit: number
  /** Whom the configuration lets in. */
  doors: Doors
  /** What each key has in the router; outlives this actor. */
  readonly keys: KeyLimits
}

export type RequestsInput = RequestsContext

/** Makes one actor per request, reaps it when it settled, answers for it when it broke. */
export const requestsChart = {
  id: 'requests',
  initial: 'taking',
  on: {
    'xstate.done.actor.*': { actions: ['reap'] },
    'xstate.error.actor.*': { actions: ['answerFor'] },
    'requests.cut': { actions: ['cut'] },
    'requests.replace': { actions: ['replace'] },
    'requests.unbind': { actions: ['unbind'] },
    'requests.configure': { actions: ['configure'] },
  },
  states: {
    taking: {
      entry: ['takeOver'],
      on: {
        'request.submit': [{ guard: 'isFull', actions: ['refuseFull'] }, { actions: ['begin'] }],
        'requests.drain': [{ guard: 'isEmpty', target: 'drained' }, { target: 'draining' }],
      },
    },
    draining: {
      on: {
        'request.submit': { actions: ['refuseDraining'] },
        'xstate.done.actor.*': [{ guard: 'isLast', target: 'drained', actions: ['reap'] }, { actions: ['reap'] }],
        'xstate.error.actor.*': [
          { guard: 'isLast', target: 'drained', actions: ['answerFor'] },
          { actions: ['answerFor'] },
        ],
      },
    },
    drained: { entry: ['tellEmptied'], on: { 'request.submit': { actions: ['refuseDraining'] } } },
  },
} as const satisfies Chart

type Of<T extends RequestsEvent['type']> = Extract<RequestsEvent, { type: T }>

/** `request/<id>` without what stands before the id. */
const BEFORE_ID = address.request('').length
const requestOf = (id: string): string => id.slice(BEFORE_ID)

const each = (registry: RequestsContext['registry'], event: RequestEvent, api: Api<RequestsEvent>): void => {
  for (const request of registry.values()) api.send(request, event)
}

export const requestsLogic = flat<RequestsContext, RequestsEvent, RequestsInput>(requestsChart, {
  context: (input) => input,
  guards: {
    isFull: ({ registry, limit }) => registry.size >= limit,
    isEmpty: ({ registry }) => registry.size === 0,
    isLast: ({ registry }, event) => registry.size === 1 && registry.has((event as Of<'xstate.done.actor.*'>).actorId),
  },
  actions: {
    begin: ({ registry, ports, journal, doors, keys }, event, api) => {
      const { job } = event as Of<'request.submit'>
      const refusal = admit(doors, keys, job, (key) => firstEndSeconds(registry, ports, key))
      if (refusal !== undefined) {
        refuse(ports, job, refusal)
        return
      }
      journal.record({ type: 'request.arrived', at: job.arrivedAt, job })
      const id = address.request(job.id)
      registry.set(id, spawn(api.self as unknown as AnyActorRef, requestLogic, id, { job, ports }))
    },
    refuseFull: ({ registry, ports, limit }, event) => {
      const { job } = event as Of<'request.submit'>
      const message = `${limit} requests are in the router (limits.concurrent); no more are taken.`
      refuse(
        ports,
        job,
        new RouterError('queue_full', message, { retryAfterSeconds: firstEndSeconds(registry, ports) }),
      )
    },
    refuseDraining: ({ ports }, event) => {
      const { job } = event as Of<'request.submit'>
      refuse(ports, job, new RouterError('draining', 'The router is shutting down.', { retryAfterSeconds: 5 }))
    },
    reap: ({ registry, keys }, event) => {
      const { actorId } = event as Of<'xstate.done.actor.*'>
      registry.delete(actorId)
      keys.leave(requestOf(actorId))
    },
    answerFor: (context, event, api) => {
      const { actorId, error } = event as Of<'xstate.error.actor.*'>
      answerFor(context, actorId, error, api)
    },
    // After a supervisor that broke: its requests go on under this one, those that ended meanwhile are seen to.
    takeOver: (context, _event, api) => {
      for (const [id, request] of context.registry) {
        adopt(request, api.self as unknown as AnyActorRef)
        const { status, error } = request.getSnapshot()
        if (status === 'done') {
          context.registry.delete(id)
          context.keys.leave(requestOf(id))
        }
        if (status === 'error') answerFor(context, id, error, api)
      }
    },
    cut: ({ registry }, _event, api) => each(registry, { type: 'request.cut', reason: 'draining' }, api),
    replace: ({ registry }, event, api) => {
      const { blamed } = event as Of<'requests.replace'>
      const culprit = blamed === undefined ? undefined : registry.get(address.request(blamed))
      if (culprit !== undefined) api.send(culprit, { type: 'place.again', blamed: true } satisfies RequestEvent)
      for (const request of registry.values())
        if (request !== culprit) api.send(request, { type: 'place.again' } satisfies RequestEvent)
    },
    unbind: ({ registry }, event, api) => {
      const { queue } = event as Of<'requests.unbind'>
      for (const request of registry.values()) {
        const { bound } = (request.getSnapshot() as { context: RequestContext }).context
        if (bound === undefined) continue
        const isThere = queue === undefined || (bound.node === queue.node && sameModel(bound.model, queue.model))
        if (isThere)
          api.send(request, {
            type: 'queue.refused',
            node: bound.node,
            reason: 'queue_restarted',
          } satisfies RequestEvent)
      }
    },
    configure: (context, event) => {
      const { config } = event as Of<'requests.configure'>
      context.ports = { ...context.ports, config }
      context.doors = config
      context.limit = config.limits.concurrent ?? Number.POSITIVE_INFINITY
    },
    tellEmptied: (_context, _event, api) => api.send(address.fleet, { type: 'requests.emptied' }),
  },
})

/** A request broke: its slot, its place in the room and its client are settled here, once. */
const answerFor = (
  { registry, ports, journal, keys }: RequestsContext,
  id: string,
  error: unknown,
  api: Api<RequestsEvent>,
): void => {
  const request = registry.get(id)
  registry.delete(id)
  keys.leave(requestOf(id))
  const at = ports.now()
  const message = error instanceof Error ? error.message : String(error)
  journal.record({ type: 'actor.failed', at, actor: id, machine: 'request', message, restarted: false })
  if (request === undefined) return
  const { context } = request.getSnapshot() as { context: RequestContext }
  const { job, place, bound, attempt, phase, firstByteMs, flow } = context
  const hasBegun = firstByteMs !== undefined
  if (place !== undefined)
    api.send(place.queue, {
      type: 'slot.released',
      request: job.id,
      attempt,
      linger: hasBegun ? 'decode' : 'prefill',
    } satisfies QueueEvent)
  if (bound !== undefined)
    api.send(address.queues, {
      type: 'queue.withdraw',
      node: bound.node,
      model: bound.model,
      request: job.id,
    } satisfies QueuesEvent)
  api.send(address.dispatcher, { type: 'job.gone', request: job.id } satisfies DispatcherEvent)
  const refusal = new RouterError('internal', 'The router failed on this request.')
  const bytes = flow?.bytes ?? 0
  if (hasBegun)
    ports.gateway.cut(job.id, {
      class: 'truncated',
      message: refusal.message,
      bytes,
      elapsedMs: at - job.arrivedAt,
    })
  else ports.refuse(job.id, refusal)
  const outcome: Outcome = {
    end: hasBegun ? 'incomplete' : 'failed',
    status: hasBegun ? 200 : 500,
    code: 'internal',
    message,
    ...(place === undefined ? {} : { node: place.node, model: place.model }),
    phase,
    bytes,
    retries: attempt - 1,
  }
  journal.record(settledFact(job, outcome, at, place?.residency))
}

/** Without a measurement an answer is assumed to take this long, in ms. */
const DEFAULT_SERVICE_MS = 10_000

/** Whole seconds until the first of those that run (of the key, if one is named) should end. */
const firstEndSeconds = (
  registry: RequestsContext['registry'],
  { now, serviceMs }: RequestPorts,
  key?: string,
): number => {
  const running = [...registry.values()].flatMap((request): Running[] => {
    const { job, place, startedAt } = (request.getSnapshot() as { context: RequestContext }).context
    if (place === undefined || (key !== undefined && job.key !== key)) return []
    return [{ elapsedMs: now() - startedAt, meanMs: serviceMs(place.node, place.model) ?? DEFAULT_SERVICE_MS }]
  })
  return retryAfterSeconds({ running, meanMs: DEFAULT_SERVICE_MS, slots: running.length, ahead: 0 })
}

/** Refused at the door: counted like any other request, with its one terminal status. */
const refuse = (ports: RequestPorts, job: RequestContext['job'], error: RouterError): void => {
  const at = ports.now()
  const status = statusOf(error.code, job.dialect)
  ports.journal.record({ type: 'request.arrived', at: job.arrivedAt, job })
  const { code, message } = error
  const outcome: Outcome = { end: 'rejected', status, code, message, phase: 'placing', bytes: 0, retries: 0 }
  ports.journal.record(settledFact(job, outcome, at))
  ports.refuse(job.id, error)
}
