import type { Config, PriorityConfig } from '../src/domain/config'
import type { Failure, PlacementCause } from '../src/domain/facts'
import type { Job, Lane, Priority } from '../src/domain/job'
import type { NodeDescription, NodeReport } from '../src/domain/node'
import type { Unreached } from '../src/domain/placement'
import type { ReplySummary } from '../src/ports/node-gateway'
import type { RouterError } from '../src/domain/errors'

/**
 * Every event between actors, one union per receiver. `subject.verb`: an imperative asks and may be refused, a past
 * participle tells. Events are plain data; a job is known by its request id, messages about it carry the attempt.
 *
 * Addresses (systemId): `fleet`, `dispatcher`, `requests`, `queues`, `request/<id>`, `queue/<node>/<model key>`,
 * `node/<name>`, `poller/<name>`, `runtime/<name>`.
 */

/** To the root: membership and shutdown. */
export type FleetEvent =
  | { readonly type: 'node.add'; readonly node: NodeDescription }
  | { readonly type: 'node.remove'; readonly node: string }
  /** Another configuration is in force: its nodes are the configured ones, its numbers hold for what begins from now on. */
  | { readonly type: 'fleet.configure'; readonly config: Config }
  | { readonly type: 'fleet.drain'; readonly graceMs: number }
  /** The last request has settled while draining. */
  | { readonly type: 'requests.emptied' }

/** To the supervisor of requests. */
export type RequestsEvent =
  | { readonly type: 'request.submit'; readonly job: Job }
  /** Refuse new requests; the answer is `requests.emptied` once none is left. */
  | { readonly type: 'requests.drain' }
  /** End whatever still runs, in-band. */
  | { readonly type: 'requests.cut' }
  /** For requests that begin from now on. */
  | { readonly type: 'requests.configure'; readonly config: Config }
  /** Requests that wait for a decision ask again: the dispatcher lost its memory, on account of the one named. */
  | { readonly type: 'requests.replace'; readonly blamed?: string }
  /** Those that are bound to this queue, or without a name to any, ask again: it broke. */
  | { readonly type: 'requests.unbind'; readonly queue?: { readonly node: string; readonly model: string } }
  | ChildEvent

/** To the dispatcher, the one writer of the ledger. */
export type DispatcherEvent =
  | {
      readonly type: 'request.place'
      readonly job: Job
      readonly attempt: number
      readonly cause: PlacementCause
      /** Nodes that failed it before. */
      readonly excluded: readonly string[]
      readonly unreached?: readonly Unreached[]
    }
  /** It stands without a first byte on a node that stands still: is there a node that would take it now? */
  | {
      readonly type: 'request.elsewhere'
      readonly job: Job
      readonly attempt: number
      readonly excluded: readonly string[]
      readonly unreached?: readonly Unreached[]
    }
  /** A slot that was granted is free again. `linger`: the node may still compute for a client that left. */
  | {
      readonly type: 'slot.freed'
      readonly request: string
      readonly attempt: number
      readonly linger?: 'prefill' | 'decode'
    }
  /** The request has left, wherever it stood. */
  | { readonly type: 'job.gone'; readonly request: string }
  /** A queue's answer to `queue.start`: this one runs now, or nobody is there any more. */
  | {
      readonly type: 'slot.taken'
      readonly node: string
      readonly model: string
      readonly request: string
      readonly attempt: number
    }
  | { readonly type: 'slot.declined'; readonly node: string; readonly model: string }
  /** A queue broke, or without a name their supervisor: these run still, everybody else who was to start asks again. */
  | {
      readonly type: 'queue.broke'
      readonly queue?: { readonly node: string; readonly model: string }
      readonly running: readonly string[]
    }
  /** A bound request left its queue without running. */
  | { readonly type: 'bound.gone'; readonly node: string; readonly model: string; readonly request: string }
  | { readonly type: 'load.finished'; readonly node: string; readonly model: string; readonly tookMs: number }
  /** `unsent`: the node could not even be reached. */
  | {
      readonly type: 'load.failed'
      readonly node: string
      readonly model: string
      readonly message: string
      readonly unsent?: Failure['class']
    }
  /** Whoever carried out the node's loads broke: what was under way is forgotten, which is no failure of the node's. */
  | { readonly type: 'load.lost'; readonly node: string }
  /** Health, admission, breaker, residency or inventory of a node is another now. */
  | { readonly type: 'node.changed'; readonly node: string }
  | { readonly type: 'node.reported'; readonly node: string; readonly report: NodeReport; readonly startedAt: number }
  | { readonly type: 'node.gone'; readonly node: string }
  | { readonly type: 'dispatcher.configure'; readonly config: Config }
  /** To self: look at the waiting room again, one placement a turn. */
  | { readonly type: 'room.look' }
  | { readonly type: 'linger.ended' }

/** To a request. */
export type RequestEvent =
  | { readonly type: 'placement.held'; readonly reason: string }
  | { readonly type: 'placement.waiting'; readonly node?: string; readonly reason: string }
  | { readonly type: 'placement.loading'; readonly node: string; readonly model: string }
  | { readonly type: 'placement.bound'; readonly node: string; readonly model: string }
  | { readonly type: 'placement.refused'; readonly error: RouterError }
  /** Another node would take it now. */
  | { readonly type: 'placement.elsewhere'; readonly attempt: number }
  /** The node that it was sent to makes no progress with anybody. */
  | { readonly type: 'node.wedged'; readonly node: string }
  /** The load it waited for failed, or its node went away: ask again, without that node when the failure is its own. */
  | { readonly type: 'placement.lost'; readonly node: string; readonly model?: string; readonly failure?: Failure }
  | { readonly type: 'hold.ticked' }
  | { readonly type: 'place.again'; readonly blamed?: true }
  | {
      readonly type: 'slot.granted'
      readonly node: string
      readonly model: string
      readonly attempt: number
      readonly residency: 'resident' | 'cold'
      readonly contextTokens?: number
      /** The request itself makes the node load the model, which may take so long, in ms. */
      readonly loadMs?: number
      /** The queue that granted it, to be told of the release. */
      readonly queue: string
    }
  | { readonly type: 'queue.refused'; readonly node: string; readonly reason: string }
  | { readonly type: 'reply.started'; readonly firstByteMs: number }
  | { readonly type: 'reply.finished'; readonly summary: ReplySummary }
  | { readonly type: 'reply.failed'; readonly failure: Failure; readonly rejected: boolean }
  /** The client's request has no form that the node understands. */
  | { readonly type: 'reply.refused'; readonly error: RouterError }
  | { readonly type: 'client.left'; readonly bytes?: number }
  /** The client has its 200 and reads comments until the answer begins. */
  | { readonly type: 'headers.sent' }
  | { readonly type: 'request.cut'; readonly reason: 'draining' | 'internal' }

/** To the supervisor of queues. */
export type QueuesEvent =
  | { readonly type: 'queue.enqueue'; readonly node: string; readonly model: string; readonly entry: QueueEntry }
  | {
      readonly type: 'queue.start'
      readonly node: string
      readonly model: string
      readonly batch: boolean
      readonly loadMs?: number
    }
  | { readonly type: 'queue.withdraw'; readonly node: string; readonly model: string; readonly request: string }
  | { readonly type: 'queues.close'; readonly node: string; readonly reason: string }
  /** The node takes nothing now, or is to load the model first: whoever is bound to it, or to the model there, asks again. */
  | { readonly type: 'queues.return'; readonly node: string; readonly model?: string; readonly reason: string }
  /** A node of that name is there again. */
  | { readonly type: 'queues.open'; readonly node: string }
  | { readonly type: 'queues.configure'; readonly limit: number; readonly rules: PriorityConfig }
  | ChildEvent

export interface QueueEntry {
  readonly request: string
  readonly attempt: number
  readonly arrivedAt: number
  readonly priority: Priority
  /** Its slot is reserved: it starts at once. Otherwise it is bound and waits for `queue.start`. */
  readonly start: boolean
  readonly residency: 'resident' | 'cold'
  readonly contextTokens?: number
  /** The request itself makes the node load the model, which may take so long, in ms. */
  readonly loadMs?: number
}

/** To one node:model queue. */
export type QueueEvent =
  | { readonly type: 'queue.enqueue'; readonly entry: QueueEntry }
  /**
   * The dispatcher reserved one slot for the head, or if `batch` is false for the first that is not batch work. With `loadMs`
   * that one makes the node load the model, which may take so long, in ms.
   */
  | { readonly type: 'queue.start'; readonly batch: boolean; readonly loadMs?: number }
  | { readonly type: 'queue.withdraw'; readonly request: string }
  | {
      readonly type: 'slot.released'
      readonly request: string
      readonly attempt: number
      readonly linger?: 'prefill' | 'decode'
    }
  | { readonly type: 'queue.close'; readonly reason: string }
  | { readonly type: 'queue.return'; readonly reason: string }
  | { readonly type: 'queue.open' }
  | { readonly type: 'queue.configure'; readonly limit: number; readonly rules: PriorityConfig }

/** To the keeper of one node's memory. */
export type RuntimeEvent =
  | {
      readonly type: 'model.load'
      readonly model: string
      readonly evicts: readonly string[]
      readonly cause: string
      readonly contextTokens?: number
      readonly sizeGb?: number
      readonly deadlineMs: number
    }
  | { readonly type: 'runtime.observed'; readonly report: NodeReport; readonly startedAt: number }
  | { readonly type: 'load.done' }
  | { readonly type: 'load.broke'; readonly message: string; readonly unsent?: Failure['class'] }
  | { readonly type: 'runtime.forget' }
  | { readonly type: 'runtime.configure'; readonly node: NodeDescription }

/** To the one that asks a node how it is. */
export type PollerEvent =
  /** Ask now, unless it is being asked. */
  | { readonly type: 'node.poll' }
  | { readonly type: 'poll.answered'; readonly report: NodeReport }
  | { readonly type: 'poll.broke'; readonly message: string }
  | { readonly type: 'poller.configure'; readonly node: NodeDescription; readonly health: Config['health'] }

/** To one node. */
export type NodeEvent =
  | { readonly type: 'node.pause' }
  | { readonly type: 'node.resume' }
  | { readonly type: 'node.drain' }
  /** Told while it matters: an answered poll of a node that is online is no news. */
  | { readonly type: 'poll.succeeded' }
  | { readonly type: 'poll.failed'; readonly message: string }
  /** The same server under other settings, or other numbers for its health. */
  | { readonly type: 'node.configure'; readonly node: NodeDescription; readonly health: Config['health'] }
  /** A request ended there well: life, whatever the polls say. */
  | { readonly type: 'attempt.succeeded' }
  | { readonly type: 'attempt.failed'; readonly failure: Failure; readonly model?: string; readonly lane?: Lane }
  /** A failure with these words turned out to be the request's own. */
  | { readonly type: 'attempt.forgiven'; readonly message: string }
  /** A request has stood without a first byte for longer than it should. */
  | { readonly type: 'request.stalled'; readonly request: string }
  | { readonly type: 'request.unstalled'; readonly request: string }
  | ChildEvent

/** What XState tells a parent about a child. */
export type ChildEvent =
  | { readonly type: 'xstate.done.actor.*'; readonly actorId: string }
  | { readonly type: 'xstate.error.actor.*'; readonly actorId: string; readonly error: unknown }

/** One address is asked for several times in a row, and the very same string finds its receiver without being hashed again. */
const lastSpelled = (spell: (name: string) => string): ((name: string) => string) => {
  let last: string | undefined
  let text = ''
  return (name) => {
    if (name !== last) {
      last = name
      text = spell(name)
    }
    return text
  }
}

const lastQueue = { node: '', modelKey: '', text: 'queue//' }

const queueAddress = (node: string, modelKey: string): string => {
  if (node !== lastQueue.node || modelKey !== lastQueue.modelKey) {
    lastQueue.node = node
    lastQueue.modelKey = modelKey
    lastQueue.text = `queue/${node}/${modelKey}`
  }
  return lastQueue.text
}

/** Addresses, spelled once. */
export const address = {
  fleet: 'fleet',
  dispatcher: 'dispatcher',
  requests: 'requests',
  queues: 'queues',
  request: lastSpelled((id) => `request/${id}`),
  queue: queueAddress,
  node: lastSpelled((name) => `node/${name}`),
  poller: lastSpelled((name) => `poller/${name}`),
  runtime: lastSpelled((name) => `runtime/${name}`),
} as const
