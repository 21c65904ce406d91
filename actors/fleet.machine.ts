import { type AnyActorRef, assign, setup } from 'xstate'
import type { Admission, NodeDescription } from '../src/domain/node'
import type { Journal } from '../src/ports/journal'
import { addNode, configure, type Household, removeNode, startNode } from './membership'
import type { DispatcherContext } from './dispatcher/context'
import type { Nursery } from './nursery'
import { address, type DispatcherEvent, type FleetEvent, type RequestsEvent } from './protocol'
import type { RequestsContext } from './requests.machine'
import type { Roster } from './roster'
import { stop } from './spawn'
import { NODE_INTENSITY, restartsAfter } from './supervision'
import { axesOf } from './view'

export interface FleetInput {
  readonly nursery: Nursery
  readonly roster: Roster
  readonly journal: Journal
  readonly now: () => number
  readonly nodes: readonly NodeDescription[]
  /** How a node that joins begins. */
  readonly admissionOf: (node: string) => Admission
  /** Live children by address. */
  readonly children: Map<string, AnyActorRef>
}

export interface FleetContext extends FleetInput {
  readonly graceMs: number
  /** Requests that had not ended within the grace. */
  readonly cut: number
  /** Restart times per node. */
  readonly restarts: ReadonlyMap<string, readonly number[]>
  readonly quarantined: ReadonlySet<string>
}

type Broken = { readonly actorId: string; readonly error: unknown }
const brokenIn = (event: unknown): Broken => event as Broken
const householdOf = (context: FleetContext, self: unknown): Household => ({ ...context, self: self as AnyActorRef })
const requestsIn = ({ children }: FleetContext): number => {
  const requests = children.get(address.requests) as AnyActorRef
  const { context } = requests.getSnapshot() as { context: RequestsContext }
  return context.registry.size
}
const isDead = (actor: AnyActorRef | undefined): boolean => actor?.getSnapshot().status === 'error'
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
      const { children, nursery, nodes, admissionOf } = context
      const parent = self as unknown as AnyActorRef
      children.set(address.queues, nursery.queues(parent))
      children.set(address.dispatcher, nursery.dispatcher(parent))
      children.set(address.requests, nursery.requests(parent))
      for (const node of nodes) startNode(householdOf(context, self), node, admissionOf(node.name))
    },
    addNode: ({ context, event, self }) => {
      if (event.type === 'node.add') addNode(householdOf(context, self), event.node)
    },
    removeNode: ({ context, event, self }) => {
      if (event.type === 'node.remove') removeNode(householdOf(context, self), event.node)
    },
    configure: ({ context, event, self }) => {
      if (event.type === 'fleet.configure') configure(householdOf(context, self), event.config)
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
      // Health is polled again; what an operator said is not forgotten.
      startNode(householdOf(context, self), member.description, axesOf(member).admission)
    },
    /** What the broken node's keeper of memory was about to load is loaded by nobody now. */
    loseRuntime: ({ context, event, system }) => {
      const node = nodeNameOf(brokenIn(event).actorId) ?? ''
      const member = context.roster.get(node)
      if (member === undefined) return
      stop(member.runtime)
      stop(member.poller)
      system.get(address.dispatcher)?.send({ type: 'load.lost', node } satisfies DispatcherEvent)
      system.get(address.dispatcher)?.send({ type: 'node.changed', node } satisfies DispatcherEvent)
    },
    quarantine: assign({
      quarantined: ({ context, event }) => new Set([...context.quarantined, nodeNameOf(brokenIn(event).actorId) ?? '']),
    }),
    /** A node that left or was replaced may come back whole. */
    forgetQuarantine: assign({
      quarantined: ({ context }) =>
        new Set([...context.quarantined].filter((name) => isDead(context.roster.get(name)?.node))),
    }),
    restartDispatcher: ({ context, self, system }) => {
      const broken = context.children.get(address.dispatcher)?.getSnapshot() as { context?: DispatcherContext }
      const blamed = broken.context?.asking
      context.children.set(address.dispatcher, context.nursery.dispatcher(self as unknown as AnyActorRef))
      system
        .get(address.requests)
        ?.send({ type: 'requests.replace', ...(blamed === undefined ? {} : { blamed }) } satisfies RequestsEvent)
    },
    restartQueues: ({ context, self, system }) => {
      context.children.set(address.queues, context.nursery.queues(self as unknown as AnyActorRef))
      const running = context.nursery.running()
      system.get(address.dispatcher)?.send({ type: 'queue.broke', running } satisfies DispatcherEvent)
      system.get(address.requests)?.send({ type: 'requests.unbind' } satisfies RequestsEvent)
    },
    restartRequests: ({ context, self, system }) => {
      context.children.set(address.requests, context.nursery.requests(self as unknown as AnyActorRef))
      const { value } = self.getSnapshot()
      if (value !== 'running') system.get(address.requests)?.send({ type: 'requests.drain' } satisfies RequestsEvent)
      if (value === 'cutting') system.get(address.requests)?.send({ type: 'requests.cut' } satisfies RequestsEvent)
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
    countCut: assign({ cut: ({ context }) => requestsIn(context) }),
    cutRequests: ({ system }) => system.get(address.requests)?.send({ type: 'requests.cut' }),
  },
}).createMachine({
  id: 'fleet',
  context: ({ input }) => ({ ...input, graceMs: 0, cut: 0, restarts: new Map(), quarantined: new Set() }),
  initial: 'running',
  entry: 'makeTree',
  on: {
    'node.add': { actions: 'addNode' },
    'node.remove': { actions: ['removeNode', 'forgetQuarantine'] },
    'fleet.configure': { actions: ['configure', 'forgetQuarantine'] },
    'xstate.error.actor.*': [
      {
        guard: 'isSpent',
        actions: ['quarantine', { type: 'recordFailure', params: { restarted: false } }, 'loseRuntime'],
      },
      {
        guard: 'isNode',
        actions: ['countRestart', { type: 'recordFailure', params: { restarted: true } }, 'loseRuntime', 'restartNode'],
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
    cutting: { entry: ['countCut', 'cutRequests'], on: { 'requests.emptied': 'stopped' } },
    stopped: { type: 'final' },
  },
})
