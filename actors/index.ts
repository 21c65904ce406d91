import { type AnyActorRef, createActor } from 'xstate'
import type { Config } from '../src/domain/config'
import { RouterError } from '../src/domain/errors'
import type { Job } from '../src/domain/job'
import { withTokenRatio } from '../src/learning/token-ratio'
import type { Fleet } from '../src/ports/fleet'
import type { Reply } from '../src/ports/node-gateway'
import { createKeyLimits } from '../src/placement/key-limits'
import { createLedger } from '../src/placement/ledger'
import { createRoom } from '../src/placement/room'
import { withAnyModel } from './any-model'
import { createCatalog } from './catalog'
import type { DispatcherContext } from './dispatcher/context'
import { type FleetContext, fleetMachine } from './fleet.machine'
import { address } from './protocol'
import { createRoster, type Member } from './roster'
import { guardInspection, indexScheduler } from './spawn'
import { axesOf } from './view'
import { aliasViews, modelViews } from './model-views'
import { nodeViewOf, waitersOf } from './views'
import { nurseryFor, type Ports, type Shared } from './wiring'
import { SlotMap } from '../src/domain/slot-map'

export type { Ports }

export interface Started extends Fleet {
  /** Another configuration: its nodes are the configured ones, its numbers hold for what begins from now on. */
  configure(config: Config): void
  /** The root actor, for the inspector and for tests. */
  readonly root: AnyActorRef
  readonly shared: Shared
}

/** The only door into this folder: starts the tree and speaks for it. */
export const startFleet = (
  config: Config,
  ports: Ports,
  about: { readonly instance: string; readonly version: string },
): Started => {
  const { clock, journal } = ports
  const startedAt = clock.now()
  const callers = new SlotMap<{ resolve(reply: Reply): void; reject(error: RouterError): void }>()
  const roster = createRoster((node) => catalog.forget(node))
  const catalog = createCatalog(config, { ...ports, now: () => clock.now(), roster })
  const shared: Shared = {
    roster,
    queues: new Map(),
    requests: new SlotMap(),
    samples: ports.samples,
    keys: createKeyLimits(() => clock.now()),
    desk: { ledger: createLedger(), room: createRoom() },
  }
  const children = new Map<string, AnyActorRef>()
  let draining = false

  const nursery = nurseryFor(config, { ...ports, gateway: catalog.gateway }, shared, {
    open: (request, reply) => {
      callers.take(request)?.resolve(reply)
    },
    refuse: (request, error) => {
      callers.take(request)?.reject(error.with({ requestId: request }))
    },
  })

  const root = createActor(fleetMachine, {
    id: address.fleet,
    systemId: address.fleet,
    clock: {
      setTimeout: (run: () => void, ms: number) => clock.setTimeout(run, ms),
      clearTimeout: (handle: unknown) => clock.clearTimeout(handle),
    },
    input: {
      nursery,
      roster: shared.roster,
      journal,
      now: () => clock.now(),
      nodes: config.nodes,
      children,
      admissionOf: ports.admissionOf ?? (() => 'open'),
    },
  } as never) as unknown as AnyActorRef
  indexScheduler(root)
  const broke = (machine: string) => (error: unknown) =>
    journal.record({
      type: 'actor.failed',
      at: clock.now(),
      actor: machine,
      machine,
      message: String(error),
      restarted: false,
    })
  guardInspection(root, broke('inspector'))
  root.subscribe({ error: broke(address.fleet) })
  root.start()

  /** With the prompt's tokens by the ratio that was measured for its model. */
  const estimated = (job: Job): Job => withTokenRatio(job, ports.samples.bytesPerToken(job.models[0] ?? job.asked))
  const child = (id: string): AnyActorRef => children.get(id) as AnyActorRef
  const quarantined = (): ReadonlySet<string> => (root.getSnapshot() as { context: FleetContext }).context.quarantined
  const loading = (): DispatcherContext['loading'] =>
    (child(address.dispatcher).getSnapshot() as { context: DispatcherContext }).context.loading
  const isHealthy = (health: string): boolean => health === 'online' || health === 'suspect'
  const takesWork = (member: Member): boolean => {
    const { health, admission, breaker } = axesOf(member)
    return isHealthy(health) && admission === 'open' && breaker !== 'open'
  }

  return {
    root,
    shared,

    submit: (job, signal) =>
      new Promise<Reply>((resolve, reject) => {
        if (signal.aborted) {
          reject(new RouterError('client_disconnected', 'The client left.'))
          return
        }
        callers.set(job.id, { resolve, reject })
        child(address.requests).send({
          type: 'request.submit',
          job: estimated(job.anyModel ? withAnyModel(job, shared.roster) : catalog.names.resolve(job)),
        })
        // Whoever was to take it is stopped, or broke on it.
        if (callers.has(job.id) && !shared.requests.has(address.request(job.id))) {
          callers.delete(job.id)
          reject(
            draining
              ? new RouterError('draining', 'The router is shutting down.', { requestId: job.id, retryAfterSeconds: 5 })
              : new RouterError('internal', 'The router failed on this request.', { requestId: job.id }),
          )
        }
        signal.addEventListener(
          'abort',
          () => shared.requests.get(address.request(job.id))?.send({ type: 'client.left' }),
          { once: true },
        )
      }),

    headersSent: (request) => shared.requests.get(address.request(request))?.send({ type: 'headers.sent' }),

    running: (key) => shared.keys.running(key),

    overview: () => {
      const requests: Record<string, number> = {}
      for (const request of shared.requests.values()) {
        const { value } = request.getSnapshot() as { value: string }
        requests[value] = (requests[value] ?? 0) + 1
      }
      const { room, ledger } = shared.desk
      const members = [...shared.roster.members()]
      return {
        ...about,
        startedAt,
        draining,
        // A slot that is kept while its model loads has nothing at the node yet.
        inFlight: ledger.total() - loading().size,
        waiting: room.size - room.heldCount + loading().size,
        held: room.heldCount,
        nodes: members.length,
        healthyNodes: members.filter(takesWork).length,
        models: modelViews(shared.roster, ledger).length,
        requests,
      }
    },

    descriptions: () => [...shared.roster.members()].map(({ description }) => description),
    nodes: () =>
      [...shared.roster.members()].map((member) =>
        nodeViewOf(member, shared, quarantined().has(member.description.name)),
      ),
    models: () => {
      const models = modelViews(roster, shared.desk.ledger)
      return aliasViews(models, catalog.names.aliases)
    },
    chainOf: (asked) => catalog.names.chainOf(asked).models,
    learned: (name) => (roster.get(name) === undefined ? undefined : ports.samples.learned(name)),
    queues: () => [...shared.roster.members()].flatMap((member) => nodeViewOf(member, shared, false).queues),
    waiters: () => waitersOf(shared.desk.room, shared, loading(), clock.now()),

    actors: () => {
      const view = (id: string, actor: AnyActorRef, parent?: string) => {
        const { value, status } = actor.getSnapshot() as { value: unknown; status: string }
        const state = status === 'active' ? (typeof value === 'string' ? value : JSON.stringify(value)) : status
        return { id, machine: id.split('/')[0] ?? id, state, ...(parent === undefined ? {} : { parent }) }
      }
      return [
        view(address.fleet, root),
        ...[...children].map(([id, actor]) => view(id, actor, address.fleet)),
        ...[...shared.roster.members()].flatMap(({ description: { name }, runtime, poller }) => [
          view(address.poller(name), poller, address.node(name)),
          view(address.runtime(name), runtime, address.node(name)),
        ]),
        ...[...shared.queues].map(([id, actor]) => view(id, actor, address.queues)),
        ...[...shared.requests].map(([id, actor]) => view(id, actor, address.requests)),
      ]
    },

    ready: () => {
      const members = [...shared.roster.members()]
      return (
        members.some((member) => isHealthy(axesOf(member).health)) ||
        (members.length > 0 && members.every((member) => axesOf(member).health !== 'unknown'))
      )
    },

    configure: (config) => {
      catalog.configure(config)
      root.send({ type: 'fleet.configure', config })
    },
    addNode: (node) => root.send({ type: 'node.add', node }),
    removeNode: (node) => root.send({ type: 'node.remove', node }),

    setAdmission: (name, admission) => {
      const member = shared.roster.get(name)
      if (member === undefined) return false
      member.node.send({
        type: admission === 'open' ? 'node.resume' : admission === 'paused' ? 'node.pause' : 'node.drain',
      })
      return true
    },

    stop: (graceMs) =>
      new Promise((resolve) => {
        draining = true
        journal.record({ type: 'fleet.draining', at: clock.now(), running: shared.requests.size, graceMs })
        root.subscribe({
          complete: () => {
            const { cut } = (root.getSnapshot() as { context: FleetContext }).context
            journal.record({ type: 'fleet.stopped', at: clock.now(), cut })
            for (const actor of [
              ...shared.queues.values(),
              ...children.values(),
              ...[...shared.roster.members()].flatMap(({ runtime, poller }) => [runtime, poller]),
            ]) {
              ;(actor as unknown as { _stop(): void })._stop()
            }
            resolve({ cut })
          },
        })
        root.send({ type: 'fleet.drain', graceMs })
      }),
  }
}
