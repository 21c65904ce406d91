import type { AnyActorRef } from 'xstate'
import type { PriorityConfig } from '../src/domain/config'
import { modelKey } from '../src/domain/job'
import type { Journal } from '../src/ports/journal'
import { type Api, type Chart, flat } from './flat'
import { address, type QueueEvent, type QueuesEvent } from './protocol'
import { type QueueContext, queueLogic } from './queue.machine'
import { adopt, spawn, stop } from './spawn'

export interface QueuesContext {
  /** Every live queue by its address; shared so that a new dispatcher can rebuild its ledger from it. */
  readonly registry: Map<string, AnyActorRef>
  limit: number
  rules: PriorityConfig
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
      entry: ['takeOver'],
      on: {
        'queue.enqueue': { actions: ['enqueue'] },
        'queue.start': { actions: ['pass'] },
        'queue.withdraw': { actions: ['pass'] },
        'queues.return': { actions: ['returnNode'] },
        'queues.close': { actions: ['closeNode'] },
        'queues.open': { actions: ['openNode'] },
        'queues.configure': { actions: ['configure'] },
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
  const { limit, rules, now } = context
  const queue = spawn(api.self as unknown as AnyActorRef, queueLogic, id, { node, model, key, limit, rules, now })
  context.registry.set(id, queue)
  return queue
}

export const queuesLogic = flat<QueuesContext, QueuesEvent, QueuesInput>(queuesChart, {
  context: (input) => input,
  actions: {
    // After a supervisor that broke: what runs in its queues goes on, whoever was bound asks again.
    takeOver: ({ registry }, _event, api) => {
      for (const queue of registry.values()) {
        adopt(queue, api.self as unknown as AnyActorRef)
        contextOf(queue).waiting.length = 0
      }
    },
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
    returnNode: ({ registry }, event, api) => {
      const { node, model, reason } = event as Of<'queues.return'>
      for (const queue of registry.values()) {
        const of = contextOf(queue)
        if (of.node !== node || (model !== undefined && of.key !== modelKey(model))) continue
        api.send(queue, { type: 'queue.return', reason } satisfies QueueEvent)
      }
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
    openNode: ({ registry }, event, api) => {
      const { node } = event as Of<'queues.open'>
      for (const queue of registry.values()) {
        if (contextOf(queue).node === node) api.send(queue, { type: 'queue.open' } satisfies QueueEvent)
      }
    },
    configure: (context, event, api) => {
      const { limit, rules } = event as Of<'queues.configure'>
      context.limit = limit
      context.rules = rules
      for (const queue of context.registry.values())
        api.send(queue, { type: 'queue.configure', limit, rules } satisfies QueueEvent)
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
      const { node, model, running } = contextOf(queue)
      // What ran goes on: its release comes to the queue's address, so it is kept known there.
      const heir = queueOf(context, node, model, api)
      for (const entry of running.values()) contextOf(heir).running.set(entry.request, entry)
      const broken = { node, model }
      api.send(address.dispatcher, { type: 'queue.broke', queue: broken, running: [...running.keys()] })
      api.send(address.requests, { type: 'requests.unbind', queue: broken })
    },
    forget: ({ registry }, event) => void registry.delete((event as Of<'xstate.done.actor.*'>).actorId),
  },
})
