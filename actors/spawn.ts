import {
  type ActorSystem,
  type AnyActorLogic,
  type AnyActorRef,
  createActor,
  type EventObject,
  type InputFrom,
} from 'xstate'
import { SlotMap } from '../src/domain/slot-map'
import type { Clock } from '../src/ports/clock'

type Handle = unknown
type Scheduled = (source: AnyActorRef, target: AnyActorRef, event: EventObject, delay: number, id?: string) => void
/** How many inspect the system; on the system itself. */
const WATCHERS = Symbol('watchers')
/** An actor's pending timers, on the actor itself. */
const TIMERS = Symbol('timers')
type Timed = AnyActorRef & { [TIMERS]?: Timer[] }
interface Timer {
  readonly id: string
  readonly handle: Handle
}

/** The actor's address, on the actor itself. */
const ADDRESS = Symbol('address')
type Addressed = AnyActorRef & { [ADDRESS]?: string }

interface SystemInternals {
  readonly _clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>
  _relay(source: AnyActorRef, target: AnyActorRef, event: EventObject): void
  inspect: ActorSystem<never>['inspect']
  get(systemId: string): AnyActorRef | undefined
  getAll(): Record<string, AnyActorRef>
  _set(systemId: string, actor: AnyActorRef): void
  _register(sessionId: string, actor: AnyActorRef): string
  _unregister(actor: AnyActorRef): void
  [WATCHERS]?: number
  readonly scheduler: {
    schedule: Scheduled
    cancel: (source: AnyActorRef, id: string) => void
    cancelAll: (ref: AnyActorRef) => void
  }
}

/**
 * Fits the system for actors that come and go with every request. Timers are kept with their actor: the stock scheduler
 * walks every timer of the system whenever any actor stops. Addresses are kept in a map that leaves no trail for the
 * garbage collector. Nothing is made for inspectors while there are none. Call it before the root starts. Uses internals
 * of XState, which is therefore pinned; a test fails when they change.
 */
export const indexScheduler = (root: AnyActorRef): void => {
  const system = root.system as unknown as SystemInternals
  keepTimersWithActors(system)
  keepAddresses(system, root)
  countWatchers(system)
}

const keepTimersWithActors = (system: SystemInternals): void => {
  const clock = system._clock
  let anonymous = 0
  /** Without a closure or a copy: every transition arms and drops several. */
  const drop = (source: Timed, id: string): Handle => {
    const own = source[TIMERS]
    if (own === undefined) return undefined
    for (let at = 0; at < own.length; at++) {
      const timer = own[at] as Timer
      if (timer.id !== id) continue
      const last = own.pop() as Timer
      if (last !== timer) own[at] = last
      return timer.handle
    }
    return undefined
  }
  system.scheduler.schedule = (source: Timed, target, event, delay, id = `auto.${anonymous++}`) => {
    const before = drop(source, id)
    if (before !== undefined) clock.clearTimeout(before)
    const handle = clock.setTimeout(() => {
      drop(source, id)
      system._relay(source, target, event)
    }, delay)
    source[TIMERS] ??= []
    source[TIMERS].push({ id, handle })
  }
  system.scheduler.cancel = (source, id) => {
    const handle = drop(source, id)
    if (handle !== undefined) clock.clearTimeout(handle)
  }
  system.scheduler.cancelAll = (ref: Timed) => {
    for (const { handle } of ref[TIMERS]?.splice(0) ?? []) clock.clearTimeout(handle)
  }
}

/** The stock system has two maps for this, of which nobody reads the one by session. */
const keepAddresses = (system: SystemInternals, root: AnyActorRef): void => {
  const actors = new SlotMap<AnyActorRef>()
  system.get = (systemId) => actors.get(systemId)
  system.getAll = () => Object.fromEntries(actors)
  system._set = (systemId, actor: Addressed) => {
    const known = actors.get(systemId)
    if (known !== undefined && known !== actor) throw new Error(`an actor has the address '${systemId}' already`)
    actors.set(systemId, actor)
    actor[ADDRESS] = systemId
  }
  system._register = (sessionId) => sessionId
  system._unregister = (actor: Addressed) => {
    const systemId = actor[ADDRESS]
    // One that was stopped in the middle of its work may have an heir at its address already.
    if (systemId !== undefined && actors.get(systemId) === actor) actors.delete(systemId)
  }
  // The root was made, and took its address, before.
  const { systemId } = root as { systemId?: string }
  if (systemId !== undefined) system._set(systemId, root)
}

const countWatchers = (system: SystemInternals): void => {
  const { inspect, _relay: relay } = system
  system[WATCHERS] = 0
  system.inspect = (observer) => {
    const subscription = inspect(observer)
    let isOn = true
    system[WATCHERS] = (system[WATCHERS] ?? 0) + 1
    return {
      unsubscribe: () => {
        if (isOn) system[WATCHERS] = (system[WATCHERS] ?? 1) - 1
        isOn = false
        subscription.unsubscribe()
      },
    }
  }
  system._relay = (source, target, event) => {
    if (isInspected(system)) relay(source, target, event)
    else (target as unknown as { _send(event: EventObject): void })._send(event)
  }
}

/** Somebody watches the system, as far as that is known: one that is not prepared here always counts as watched. */
export const isInspected = (system: object): boolean => (system as { [WATCHERS]?: number })[WATCHERS] !== 0

/**
 * An inspector that throws is dropped and told to `dropped`. XState calls inspectors in the middle of whatever the watched
 * actors do, and what they throw would break those.
 */
export const guardInspection = (root: AnyActorRef, dropped: (error: unknown) => void): void => {
  const { system } = root
  const inspect = system.inspect.bind(system)
  system.inspect = (given) => {
    const next = typeof given === 'function' ? given : given.next?.bind(given)
    const watching = inspect((event) => {
      try {
        next?.(event)
      } catch (error) {
        watching.unsubscribe()
        dropped(error)
      }
    })
    return watching
  }
}

/**
 * A child that its supervisor keeps in a registry of its own. XState's `spawnChild` copies all children of the parent
 * at each call and keeps finished ones for ever, so it is not used for anything that comes and goes.
 */
export const spawn = <L extends AnyActorLogic>(
  parent: AnyActorRef,
  logic: L,
  systemId: string,
  input: InputFrom<L>,
): AnyActorRef =>
  createActor(logic, { parent, id: systemId, systemId, input } as never).start() as unknown as AnyActorRef

/** Gives a child whose supervisor broke to the one that took its place. */
export const adopt = (child: AnyActorRef, parent: AnyActorRef): void => {
  ;(child as unknown as { _parent: AnyActorRef })._parent = parent
}

/** Stops a child that was made by `spawn`; its address is free at once, also where it is at work until it has heard of it. */
export const stop = (child: AnyActorRef): void => {
  ;(child.system as unknown as SystemInternals)._unregister(child)
  ;(child as unknown as { _stop(): void })._stop()
}
