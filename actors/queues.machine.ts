import type { AnyActorRef } from 'xstate'
import { modelKey } from '../src/domain/job'
import type { Journal } from '../src/ports/journal'
import { type Api, type Chart, flat } from './flat'
import { address, type QueueEvent, type QueuesEvent } from './protocol'
import { type QueueContext, queueLogic } from './queue.machine'
import { spawn, stop } from './spawn'

export interface QueuesContext {
  /** Every live queue by its address; shared so that a new dispatcher can rebuild its ledger from it. */
  readonly registry: Map<string, AnyActorRef>
  readonly limit: number
  readonly journal: Journal
  readonly now: () => number
}

export type QueuesInput = QueuesContext

/** Opens queues on demand and passes their mail on; when one fails, its requests are placed again. */
export const queuesChart = {
  id: 'queues',
  initial: 'ready',
  states: {
    ready: {
      on: {
        'queue.enqueue': { actions: ['enqueue'] },
        'queue.start': { actions: ['pass'] },
        'queue.withdraw': { actions: ['pass'] },
        'queues.close': { actions: ['closeNode'] },
        'xstate.error.actor.*': { actions: ['replaceQueue'] },
        'xstate.done.actor.*': { actions: ['forget'] },
      },
    },
  },
} as const satisfies Chart

type Of<T extends QueuesEvent['type']> = Extract<QueuesEvent, { type: T }>

const contextOf = (queue: AnyActorRef): QueueContext => (queue.getSnapshot() as { context: QueueContext }).context

const queueOf = (context: QueuesContext, node: string, model: string, api: Api<QueuesEvent>): AnyActorRef => {
  const key = modelKey(model)
  const id = address.queue(node, key)
  const known = context.registry.get(id)
  if (known !== undefined) return known
  const queue = spawn(api.self as unknown as AnyActorRef, queueLogic, id, { node, model, key, limit: context.limit })
  context.registry.set(id, queue)
  return queue
}

export const queuesLogic = flat<QueuesContext, QueuesEvent, QueuesInput>(queuesChart, {
  context: (input) => input,
  actions: {
    enqueue: (context, event, api) => {
      const { node, model, entry } = event as Of<'queue.enqueue'>
      api.send(queueOf(context, node, model, api), { type: 'queue.enqueue', entry } satisfies QueueEvent)
    },
    pass: (context, event, api) => {
      const { node, model, ...rest } = event as Of<'queue.start'> | Of<'queue.withdraw'>
      const queue = context.registry.get(address.queue(node, modelKey(model)))
      if (queue !== undefined) api.send(queue, rest)
      else if (rest.type === 'queue.start') api.send(address.dispatcher, { type: 'slot.declined', node, model })
    },
    closeNode: ({ registry }, event, api) => {
      const { node, reason } = event as Of<'queues.close'>
      for (const [id, queue] of registry) {
        if (contextOf(queue).node !== node) continue
        api.send(queue, { type: 'queue.close', reason } satisfies QueueEvent)
        if (contextOf(queue).running.size > 0) continue
        registry.delete(id)
        api.defer(() => stop(queue))
      }
    },
    replaceQueue: (context, event, api) => {
      const { registry, journal, now } = context
      const { actorId, error } = event as Of<'xstate.error.actor.*'>
      const queue = registry.get(actorId)
      registry.delete(actorId)
      journal.record({
        type: 'actor.failed',
        at: now(),
        actor: actorId,
        machine: 'queue',
        message: error instanceof Error ? error.message : String(error),
        restarted: true,
      })
      if (queue === undefined) return
      const { node, model, waiting, running } = contextOf(queue)
      for (const { request } of waiting) {
        api.send(address.dispatcher, { type: 'bound.gone', node, model })
        api.send(address.request(request), { type: 'queue.refused', node, reason: 'queue_restarted' })
      }
      // What ran goes on; its slot is in the ledger and its release comes to the queue's address, so keep it known there.
      if (running.size === 0) return
      const heir = queueOf(context, node, model, api)
      for (const entry of running.values()) contextOf(heir).running.set(entry.request, entry)
    },
    forget: ({ registry }, event) => void registry.delete((event as Of<'xstate.done.actor.*'>).actorId),
  },
})
