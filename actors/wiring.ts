import type { AnyActorRef } from 'xstate'
import type { Config } from '../src/domain/config'
import type { Admission } from '../src/domain/node'
import type { RouterError } from '../src/domain/errors'
import { modelKey } from '../src/domain/job'
import type { KeyLimits } from '../src/placement/key-limits'
import { createLedger } from '../src/placement/ledger'
import { policyNamed } from '../src/placement/policies'
import { residency } from '../src/placement/policies/residency'
import { classAt } from '../src/placement/priority'
import { createRoom, type RankOf } from '../src/placement/room'
import type { Clock } from '../src/ports/clock'
import type { IdentityStore } from '../src/ports/identities'
import type { Journal } from '../src/ports/journal'
import type { NodeGateway, Reply } from '../src/ports/node-gateway'
import type { Samples } from '../src/ports/samples'
import { dispatcherLogic } from './dispatcher.machine'
import type { DispatcherContext } from './dispatcher/context'
import { rebuilt } from './dispatcher/rebuild'
import { awaitsPoll, awaitsSuccess, type NodeStanding } from './node/context'
import { nodeMachine } from './node.machine'
import type { Nursery } from './nursery'
import { address } from './protocol'
import type { QueueContext } from './queue.machine'
import { queuesLogic } from './queues.machine'
import type { RequestContext, RequestPorts } from './request/context'
import { requestsLogic } from './requests.machine'
import type { Roster } from './roster'
import { spawn } from './spawn'
import type { SlotMap } from '../src/domain/slot-map'

export interface Ports {
  readonly gateway: NodeGateway
  readonly clock: Clock
  readonly journal: Journal
  readonly samples: Samples
  /** Where it is remembered which weights a model's name stands for; without it, only while the process runs. */
  readonly identities?: IdentityStore
  /** How a node begins that an operator had paused or drained; open without it. */
  readonly admissionOf?: (node: string) => Admission
  /** 0 <= x < 1 */
  readonly random: () => number
  /** Fine-grained time in ms, for measuring how long a decision takes. */
  readonly precise: () => number
}

/** Hands a reply or a refusal to whoever submitted the request. */
export interface Callers {
  open(request: string, reply: Reply): void
  refuse(request: string, error: RouterError): void
}

export interface Shared {
  readonly roster: Roster
  readonly queues: Map<string, AnyActorRef>
  readonly requests: SlotMap<AnyActorRef>
  readonly samples: Samples
  /** What each key has in the router. */
  readonly keys: KeyLimits
  /** The dispatcher's ledger and room, for views; only the dispatcher writes them. */
  readonly desk: Pick<DispatcherContext, 'ledger' | 'room'> & {
    ledger: DispatcherContext['ledger']
    room: DispatcherContext['room']
  }
}

/**
 * Binds ports to machines. Read top down it is the supervision tree:
 *
 *     fleet
 *     ├── queues                 opens queues on demand; a broken queue's requests are placed again
 *     │   └── queue/<node>/<model>   bound requests wait here; every running one was started by it
 *     ├── dispatcher             one placement per turn; owns the ledger of slots and the waiting room
 *     ├── requests               one actor per request; a broken one is answered for, its slot released
 *     │   └── request/<id>           placing, held, waiting, loading, queued, starting, streaming, settled
 *     └── node/<name>            health x admission x breaker; restarted, then quarantined
 *         ├── poller/<name>          asks it how it is, again and again
 *         └── runtime/<name>         what is in memory there; loads, one at a time
 */
export const nurseryFor = (first: Config, ports: Ports, shared: Shared, callers: Callers): Nursery => {
  let config = first
  const { gateway, clock, journal, samples, precise, random } = ports
  const { roster } = shared
  const now = () => clock.now()

  /** Whether a node's state is one of those that the news matter in. */
  const awaits =
    (does: (standing: NodeStanding) => boolean) =>
    (name: string): boolean => {
      const actor = roster.get(name)?.node
      return actor !== undefined && does(actor.getSnapshot() as NodeStanding)
    }

  const requestPorts = (): RequestPorts => ({
    gateway,
    journal,
    node: (name) => roster.get(name)?.description,
    awaitsSuccess: awaits(awaitsSuccess),
    open: callers.open,
    refuse: callers.refuse,
    now,
    serviceMs: (node, model) => samples.service(node, modelKey(model))?.meanMs,
    config,
  })

  /** ms since the epoch of the last byte of any answer from the node, or 0. */
  const lastProgressAt = (name: string): number => {
    let latest = 0
    for (const request of shared.requests.values()) {
      const { place, flow } = (request.getSnapshot() as { context: RequestContext }).context
      if (place?.node === name && flow !== undefined && flow.bytes > 0) latest = Math.max(latest, flow.lastByteAt)
    }
    return latest
  }

  return {
    configure: (next) => {
      config = next
    },

    running: () =>
      [...shared.queues.values()].flatMap((queue) => [
        ...(queue.getSnapshot() as { context: QueueContext }).context.running.keys(),
      ]),

    queues: (parent) =>
      spawn(parent, queuesLogic, address.queues, {
        registry: shared.queues,
        limit: config.limits.queuePerNode,
        rules: config.priorities,
        journal,
        now,
      }),

    dispatcher: (parent) => {
      const rankNow: RankOf = (job) => config.priorities.order.indexOf(classAt(job, now(), config.priorities))
      const desk = rebuilt({ ledger: createLedger(), room: createRoom(rankNow) }, shared.queues, roster, now())
      shared.desk.ledger = desk.ledger
      shared.desk.room = desk.room
      return spawn(parent, dispatcherLogic, address.dispatcher, {
        ...desk,
        roster,
        policy: policyNamed(config.policy.use) ?? residency,
        samples,
        journal,
        config,
        now,
        random,
        precise,
        loading: new Map(),
        lingering: new Map(),
      })
    },

    requests: (parent) =>
      spawn(parent, requestsLogic, address.requests, {
        registry: shared.requests,
        ports: requestPorts(),
        journal,
        limit: config.limits.concurrent ?? Number.POSITIVE_INFINITY,
        doors: config,
        keys: shared.keys,
      }),

    node: (parent, description) => {
      // The actors are in the roster before they start, since their first act may look themselves up there.
      const absent = undefined as unknown as AnyActorRef
      const before = roster.get(description.name)
      const { node: known = absent, runtime = absent, poller = absent } = before ?? {}
      roster.join({ ...(before ?? {}), description, node: known, runtime, poller })
      const actor = spawn(parent, nodeMachine, address.node(description.name), {
        node: description,
        roster,
        journal,
        runtime: { load: gateway.load.bind(gateway), journal, now },
        poller: { report: gateway.report.bind(gateway), roster, awaitsPoll: awaits(awaitsPoll), now },
        now,
        lastProgressAt,
        health: config.health,
      })
      const joined = roster.get(description.name)
      if (joined !== undefined) roster.join({ ...joined, node: actor })
      return actor
    },
  }
}
