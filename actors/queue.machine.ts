import type { PriorityConfig } from '../src/domain/config'
import { classAt, comparePlaces, queueLimitFor } from '../src/placement/priority'
import { type Api, type Chart, flat } from './flat'
import { address, type QueueEntry, type QueueEvent } from './protocol'
import { SlotMap } from '../src/domain/slot-map'

export interface QueueContext {
  readonly node: string
  /** As the fleet calls it. */
  readonly model: string
  readonly key: string
  limit: number
  /** Who goes first. */
  rules: PriorityConfig
  readonly now: () => number
  /** Bound requests in the order in which they will start. */
  readonly waiting: QueueEntry[]
  readonly running: SlotMap<QueueEntry>
}

export type QueueInput = Pick<QueueContext, 'node' | 'model' | 'key' | 'limit' | 'rules' | 'now'>

/** One node:model. Bound requests wait here; every running one was started by it and is released to it. */
export const queueChart = {
  id: 'queue',
  initial: 'open',
  states: {
    open: {
      on: {
        'queue.enqueue': [
          { guard: 'isReserved', actions: ['start'] },
          { guard: 'hasRoom', actions: ['append'] },
          { actions: ['refuse'] },
        ],
        'queue.start': [{ guard: 'hasNext', actions: ['startNext'] }, { actions: ['decline'] }],
        'queue.withdraw': { actions: ['withdraw'] },
        'slot.released': { guard: 'isRunning', actions: ['release'] },
        'queue.configure': { actions: ['configure'] },
        'queue.return': { actions: ['refuseAll'] },
        'queue.close': { target: 'closed', actions: ['refuseAll'] },
      },
    },
    // The node leaves the fleet: what runs may end, nothing new begins. A node of that name may come before it has ended.
    closed: {
      on: {
        'queue.enqueue': { actions: ['refuse'] },
        'queue.start': { actions: ['decline'] },
        'queue.withdraw': [{ guard: 'isLast', target: 'emptied', actions: ['withdraw'] }, { actions: ['withdraw'] }],
        'slot.released': [
          { guard: 'isLastRunning', target: 'emptied', actions: ['release'] },
          { guard: 'isRunning', actions: ['release'] },
        ],
        'queue.configure': { actions: ['configure'] },
        'queue.open': { target: 'open' },
      },
    },
    emptied: { final: true },
  },
} as const satisfies Chart

type Of<T extends QueueEvent['type']> = Extract<QueueEvent, { type: T }>
type QueueApi = Api<QueueEvent>

const grant = (context: QueueContext, entry: QueueEntry, api: QueueApi): void => {
  context.running.set(entry.request, entry)
  api.send(address.request(entry.request), {
    type: 'slot.granted',
    node: context.node,
    model: context.model,
    attempt: entry.attempt,
    residency: entry.residency,
    queue: address.queue(context.node, context.key),
    ...(entry.contextTokens === undefined ? {} : { contextTokens: entry.contextTokens }),
    ...(entry.loadMs === undefined ? {} : { loadMs: entry.loadMs }),
  })
}

const isRunning = (running: QueueContext['running'], { request, attempt }: Of<'slot.released'>): boolean =>
  running.get(request)?.attempt === attempt

/** The first that may have a slot: batch work only where the dispatcher says that its share has room. */
const nextOf = ({ waiting, rules, now }: QueueContext, { batch }: Of<'queue.start'>): QueueEntry | undefined => {
  const at = now()
  let next: QueueEntry | undefined
  for (const entry of waiting) {
    if (!batch && classAt(entry, at, rules) === 'batch') continue
    if (next === undefined || comparePlaces(entry, next, at, rules) < 0) next = entry
  }
  return next
}

const refuse = (context: QueueContext, entry: QueueEntry, reason: string, api: QueueApi): void => {
  const { node, model } = context
  if (entry.start) api.send(address.dispatcher, { type: 'slot.freed', request: entry.request, attempt: entry.attempt })
  else api.send(address.dispatcher, { type: 'bound.gone', node, model, request: entry.request })
  api.send(address.request(entry.request), { type: 'queue.refused', node, reason })
}

export const queueLogic = flat<QueueContext, QueueEvent, QueueInput>(queueChart, {
  context: (input) => ({ ...input, waiting: [], running: new SlotMap() }),
  guards: {
    isReserved: (_context, event) => (event as Of<'queue.enqueue'>).entry.start,
    hasRoom: ({ waiting, limit, rules }, event) =>
      waiting.length < queueLimitFor(limit, (event as Of<'queue.enqueue'>).entry.priority, rules),
    hasNext: (context, event) => nextOf(context, event as Of<'queue.start'>) !== undefined,
    isRunning: ({ running }, event) => isRunning(running, event as Of<'slot.released'>),
    isLastRunning: ({ running }, event) => running.size === 1 && isRunning(running, event as Of<'slot.released'>),
    isLast: ({ running }, event) => running.size === 1 && running.has((event as Of<'queue.withdraw'>).request),
  },
  actions: {
    start: (context, event, api) => grant(context, (event as Of<'queue.enqueue'>).entry, api),
    append: ({ waiting, rules, now }, event) => {
      const { entry } = event as Of<'queue.enqueue'>
      let at = waiting.length
      while (at > 0 && comparePlaces(entry, waiting[at - 1] as QueueEntry, now(), rules) < 0) at -= 1
      waiting.splice(at, 0, entry)
    },
    refuse: (context, event, api) => refuse(context, (event as Of<'queue.enqueue'>).entry, 'queue_full', api),
    decline: ({ node, model }, _event, api) => api.send(address.dispatcher, { type: 'slot.declined', node, model }),
    startNext: (context, event, api) => {
      const started = event as Of<'queue.start'>
      const next = nextOf(context, started)
      if (next === undefined) return
      const { node, model, waiting } = context
      waiting.splice(waiting.indexOf(next), 1)
      api.send(address.dispatcher, { type: 'slot.taken', node, model, request: next.request, attempt: next.attempt })
      const { loadMs } = started
      grant(context, loadMs === undefined ? next : { ...next, residency: 'cold', loadMs }, api)
    },
    withdraw: (context, event, api) => {
      const { request } = event as Of<'queue.withdraw'>
      context.running.delete(request)
      const at = context.waiting.findIndex((entry) => entry.request === request)
      if (at < 0) return
      context.waiting.splice(at, 1)
      api.send(address.dispatcher, { type: 'bound.gone', node: context.node, model: context.model, request })
    },
    release: ({ running }, event, api) => {
      const { request, attempt, linger } = event as Of<'slot.released'>
      running.delete(request)
      api.send(address.dispatcher, {
        type: 'slot.freed',
        request,
        attempt,
        ...(linger === undefined ? {} : { linger }),
      })
    },
    configure: (context, event) => {
      const { limit, rules } = event as Of<'queue.configure'>
      context.limit = limit
      context.rules = rules
    },
    refuseAll: (context, event, api) => {
      const { node, model } = context
      const { reason } = event as Of<'queue.close'> | Of<'queue.return'>
      const refused = context.waiting.splice(0)
      // Whoever asks again must not meet those that are about to.
      for (const { request } of refused) api.send(address.dispatcher, { type: 'bound.gone', node, model, request })
      for (const { request } of refused) api.send(address.request(request), { type: 'queue.refused', node, reason })
    },
  },
})
