import { type AnyActorRef, assign, setup } from 'xstate'
import type { NodeDescription } from '../src/domain/node'
import type { Journal } from '../src/ports/journal'
import { address, type FleetEvent } from './protocol'
import type { Roster } from './roster'
import { stop } from './spawn'
import { NODE_INTENSITY, restartsAfter } from './supervision'

/** Makes the children; bound in the wiring, which reads as the supervision tree. */
export interface Nursery {
  dispatcher(parent: AnyActorRef): AnyActorRef
  requests(parent: AnyActorRef): AnyActorRef
  queues(parent: AnyActorRef): AnyActorRef
  node(parent: AnyActorRef, node: NodeDescription): AnyActorRef
}

export interface FleetInput {
  readonly nursery: Nursery
  readonly roster: Roster
  readonly journal: Journal
  readonly now: () => number
  readonly nodes: readonly NodeDescription[]
  /** Live children by address. */
  readonly children: Map<string, AnyActorRef>
}

export interface FleetContext extends FleetInput {
  readonly graceMs: number
  /** Restart times per node. */
  readonly restarts: ReadonlyMap<string, readonly number[]>
  readonly quarantined: ReadonlySet<string>
}

type Broken = { readonly actorId: string; readonly error: unknown }
const brokenIn = (event: unknown): Broken => event as Broken
const nodeNameOf = (id: string): string | undefined =>
  id.startsWith(address.node('')) ? id.slice(address.node('').length) : undefined

/** The root: makes the tree, restarts what breaks in it, lets it drain. */
export const fleetMachine = setup({
  types: { input: {} as FleetInput, context: {} as FleetContext, events: {} as FleetEvent },
  delays: { grace: ({ context }) => context.graceMs },
  guards: {
    isNode: ({ event }) => nodeNameOf(brokenIn(event).actorId) !== undefined,
    isSpent: ({ context, event }) => {
      const { actorId } = brokenIn(event)
      return (
        nodeNameOf(actorId) !== undefined &&
        restartsAfter(context.restarts.get(actorId) ?? [], context.now(), NODE_INTENSITY) === undefined
      )
    },
    isDispatcher: ({ event }) => brokenIn(event).actorId === address.dispatcher,
    isQueues: ({ event }) => brokenIn(event).actorId === address.queues,
    isRequests: ({ event }) => brokenIn(event).actorId === address.requests,
  },
  actions: {
    makeTree: ({ context, self }) => {
      const { children, nursery, nodes } = context
      const parent = self as unknown as AnyActorRef
      children.set(address.queues, nursery.queues(parent))
      children.set(address.dispatcher, nursery.dispatcher(parent))
      children.set(address.requests, nursery.requests(parent))
      for (const node of nodes) children.set(address.node(node.name), nursery.node(parent, node))
    },
    addNode: ({ context, event, self }) => {
      if (event.type !== 'node.add' || context.roster.get(event.node.name) !== undefined) return
      const { node } = event
      context.children.set(address.node(node.name), context.nursery.node(self as unknown as AnyActorRef, node))
      context.journal.record({ type: 'node.added', at: context.now(), node: node.name, kind: node.kind, url: node.url })
    },
    removeNode: ({ context, event, system }) => {
      if (event.type !== 'node.remove') return
      const id = address.node(event.node)
      const child = context.children.get(id)
      const member = context.roster.leave(event.node)
      if (child === undefined || member === undefined) return
      context.children.delete(id)
      system.get(address.queues)?.send({ type: 'queues.close', node: event.node, reason: 'node_removed' })
      system.get(address.dispatcher)?.send({ type: 'node.gone', node: event.node })
      stop(member.runtime)
      stop(child)
      context.journal.record({ type: 'node.removed', at: context.now(), node: event.node })
    },
    countRestart: assign({
      restarts: ({ context, event }) => {
        const { actorId } = brokenIn(event)
        return new Map(context.restarts).set(
          actorId,
          restartsAfter(context.restarts.get(actorId) ?? [], context.now(), NODE_INTENSITY) ?? [],
        )
      },
    }),
    restartNode: ({ context, event, self }) => {
      const { actorId } = brokenIn(event)
      const member = context.roster.get(nodeNameOf(actorId) ?? '')
      if (member === undefined) return
      stop(member.runtime)
      context.children.set(actorId, context.nursery.node(self as unknown as AnyActorRef, member.description))
    },
    quarantine: assign({
      quarantined: ({ context, event }) => new Set([...context.quarantined, nodeNameOf(brokenIn(event).actorId) ?? '']),
    }),
    restartDispatcher: ({ context, self, system }) => {
      context.children.set(address.dispatcher, context.nursery.dispatcher(self as unknown as AnyActorRef))
      system.get(address.requests)?.send({ type: 'requests.replace' })
    },
    restartQueues: ({ context, self, system }) => {
      context.children.set(address.queues, context.nursery.queues(self as unknown as AnyActorRef))
      system.get(address.requests)?.send({ type: 'requests.replace' })
    },
    restartRequests: ({ context, self }) => {
      context.children.set(address.requests, context.nursery.requests(self as unknown as AnyActorRef))
    },
    recordFailure: ({ context, event }, { restarted }: { restarted: boolean }) => {
      const { actorId, error } = brokenIn(event)
      const message = error instanceof Error ? error.message : String(error)
      context.journal.record({
        type: 'actor.failed',
        at: context.now(),
        actor: actorId,
        machine: actorId.split('/')[0] ?? actorId,
        message,
        restarted,
      })
    },
    noteGrace: assign({
      graceMs: ({ event, context }) => (event.type === 'fleet.drain' ? event.graceMs : context.graceMs),
    }),
    drainRequests: ({ system }) => system.get(address.requests)?.send({ type: 'requests.drain' }),
    cutRequests: ({ system }) => system.get(address.requests)?.send({ type: 'requests.cut' }),
  },
}).createMachine({
  id: 'fleet',
  context: ({ input }) => ({ ...input, graceMs: 0, restarts: new Map(), quarantined: new Set() }),
  initial: 'running',
  entry: 'makeTree',
  on: {
    'node.add': { actions: 'addNode' },
    'node.remove': { actions: 'removeNode' },
    'xstate.error.actor.*': [
      { guard: 'isSpent', actions: ['quarantine', { type: 'recordFailure', params: { restarted: false } }] },
      {
        guard: 'isNode',
        actions: ['countRestart', { type: 'recordFailure', params: { restarted: true } }, 'restartNode'],
      },
      { guard: 'isDispatcher', actions: [{ type: 'recordFailure', params: { restarted: true } }, 'restartDispatcher'] },
      { guard: 'isQueues', actions: [{ type: 'recordFailure', params: { restarted: true } }, 'restartQueues'] },
      { guard: 'isRequests', actions: [{ type: 'recordFailure', params: { restarted: true } }, 'restartRequests'] },
      { actions: [{ type: 'recordFailure', params: { restarted: false } }] },
    ],
    'xstate.done.actor.*': {},
  },
  states: {
    running: { on: { 'fleet.drain': { target: 'draining', actions: 'noteGrace' } } },
    // No new requests; what runs may end within the grace.
    draining: {
      entry: 'drainRequests',
      after: { grace: 'cutting' },
      on: { 'requests.emptied': 'stopped' },
    },
    cutting: { entry: 'cutRequests', on: { 'requests.emptied': 'stopped' } },
    stopped: { type: 'final' },
  },
})
