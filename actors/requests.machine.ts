import type { AnyActorRef } from 'xstate'
import type { Journal } from '../src/ports/journal'
import { type Api, type Chart, flat } from './flat'
import { address, type RequestEvent, type RequestsEvent } from './protocol'
import type { RequestContext, RequestPorts } from './request/context'
import { requestLogic } from './request.machine'
import { spawn } from './spawn'
import { RouterError } from '../src/domain/errors'

export interface RequestsContext {
  /** Every live request by its address. */
  readonly registry: Map<string, AnyActorRef>
  readonly ports: RequestPorts
  readonly journal: Journal
  readonly limit: number
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
  },
  states: {
    taking: {
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

const each = (registry: ReadonlyMap<string, AnyActorRef>, event: RequestEvent, api: Api<RequestsEvent>): void => {
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
    begin: ({ registry, ports, journal }, event, api) => {
      const { job } = event as Of<'request.submit'>
      journal.record({ type: 'request.arrived', at: job.arrivedAt, job })
      const id = address.request(job.id)
      registry.set(id, spawn(api.self as unknown as AnyActorRef, requestLogic, id, { job, ports }))
    },
    refuseFull: ({ ports, limit }, event) => {
      const { job } = event as Of<'request.submit'>
      const message = `${limit} requests are in the router (limits.concurrent); no more are taken.`
      refuse(ports, job, new RouterError('queue_full', message, { retryAfterSeconds: 1 }))
    },
    refuseDraining: ({ ports }, event) => {
      const { job } = event as Of<'request.submit'>
      refuse(ports, job, new RouterError('draining', 'The router is shutting down.', { retryAfterSeconds: 5 }))
    },
    reap: ({ registry }, event) => void registry.delete((event as Of<'xstate.done.actor.*'>).actorId),
    answerFor: ({ registry, ports, journal }, event, api) => {
      const { actorId, error } = event as Of<'xstate.error.actor.*'>
      const request = registry.get(actorId)
      registry.delete(actorId)
      const message = error instanceof Error ? error.message : String(error)
      journal.record({
        type: 'actor.failed',
        at: ports.now(),
        actor: actorId,
        machine: 'request',
        message,
        restarted: false,
      })
      if (request === undefined) return
      const { job, place, attempt, firstByteMs, flow } = (request.getSnapshot() as { context: RequestContext }).context
      // The actor is gone: its slot, its place in the room and its client are settled here.
      if (place !== undefined)
        api.send(place.queue, {
          type: 'slot.released',
          request: job.id,
          attempt,
          linger: firstByteMs === undefined ? 'prefill' : 'decode',
        })
      api.send(address.dispatcher, { type: 'job.gone', request: job.id })
      const refusal = new RouterError('internal', 'The router failed on this request.')
      const at = ports.now()
      if (firstByteMs === undefined) ports.refuse(job.id, refusal)
      else
        ports.gateway.cut(job.id, {
          class: 'truncated',
          message: refusal.message,
          bytes: flow?.bytes ?? 0,
          elapsedMs: at - job.arrivedAt,
        })
      journal.record({
        type: 'request.settled',
        at,
        request: job.id,
        dialect: job.dialect,
        asked: job.asked,
        priority: job.priority,
        arrivedAt: job.arrivedAt,
        outcome: {
          end: 'failed',
          status: 500,
          code: 'internal',
          message,
          phase: 'placing',
          bytes: flow?.bytes ?? 0,
          retries: attempt - 1,
        },
      })
    },
    cut: ({ registry }, _event, api) => each(registry, { type: 'request.cut', reason: 'draining' }, api),
    replace: ({ registry }, _event, api) => each(registry, { type: 'place.again' }, api),
    tellEmptied: (_context, _event, api) => api.send(address.fleet, { type: 'requests.emptied' }),
  },
})

/** Refused at the door: counted like any other request, with its one terminal status. */
const refuse = (ports: RequestPorts, job: RequestContext['job'], error: RouterError): void => {
  const at = ports.now()
  const status = error.code === 'queue_full' ? 429 : 503
  ports.journal.record({ type: 'request.arrived', at: job.arrivedAt, job })
  ports.journal.record({
    type: 'request.settled',
    at,
    request: job.id,
    dialect: job.dialect,
    asked: job.asked,
    priority: job.priority,
    arrivedAt: job.arrivedAt,
    outcome: {
      end: 'rejected',
      status,
      code: error.code,
      message: error.message,
      phase: 'placing',
      bytes: 0,
      retries: 0,
    },
  })
  ports.refuse(job.id, error)
}
