import { type AnyActorLogic, type AnyActorRef, createActor, type EventObject, type InputFrom } from 'xstate'
import type { Clock } from '../src/ports/clock'

type Handle = unknown
type Scheduled = (source: AnyActorRef, target: AnyActorRef, event: EventObject, delay: number, id?: string) => void
interface SystemInternals {
  readonly _clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>
  _relay(source: AnyActorRef, target: AnyActorRef, event: EventObject): void
  readonly scheduler: {
    schedule: Scheduled
    cancel: (source: AnyActorRef, id: string) => void
    cancelAll: (ref: AnyActorRef) => void
  }
}

/**
 * Replaces the system's scheduler by one indexed by actor. The stock one walks every timer of the system whenever any
 * actor stops. Call it before the root starts. Uses two internals of XState, which is therefore pinned; a test fails
 * when they change.
 */
export const indexScheduler = (root: AnyActorRef): void => {
  const system = root.system as unknown as SystemInternals
  const clock = system._clock
  const timers = new Map<AnyActorRef, Map<string, Handle>>()
  let anonymous = 0
  const drop = (source: AnyActorRef, id: string): Handle => {
    const own = timers.get(source)
    const handle = own?.get(id)
    if (own === undefined || handle === undefined) return undefined
    own.delete(id)
    if (own.size === 0) timers.delete(source)
    return handle
  }
  system.scheduler.schedule = (source, target, event, delay, id = `auto.${anonymous++}`) => {
    const before = drop(source, id)
    if (before !== undefined) clock.clearTimeout(before)
    const handle = clock.setTimeout(() => {
      drop(source, id)
      system._relay(source, target, event)
    }, delay)
    const own = timers.get(source) ?? new Map<string, Handle>()
    own.set(id, handle)
    timers.set(source, own)
  }
  system.scheduler.cancel = (source, id) => {
    const handle = drop(source, id)
    if (handle !== undefined) clock.clearTimeout(handle)
  }
  system.scheduler.cancelAll = (ref) => {
    for (const handle of timers.get(ref)?.values() ?? []) clock.clearTimeout(handle)
    timers.delete(ref)
  }
}

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

/** Stops a child that was made by `spawn`. */
export const stop = (child: AnyActorRef): void => {
  ;(child as unknown as { _stop(): void })._stop()
}
