import type { ActorRef, ActorSystem, AnyActorRef, AnyEventObject, EventObject, Snapshot } from 'xstate'

/** What an action of a flat chart may do beside changing its context. */
export interface Api<E extends EventObject> {
  readonly self: ActorRef<Snapshot<unknown>, E>
  readonly system: ActorSystem<{ actors: Record<string, AnyActorRef> }>
  /** To an actor or to a systemId, once the snapshot is set. A receiver that is gone hears nothing. */
  send(to: AnyActorRef | string, event: AnyEventObject): void
  /** A delayed event to self; the same id again replaces it. */
  later(event: E, ms: number, id: string): void
  cancel(id: string): void
  /** Runs once the snapshot is set. */
  defer(run: () => void): void
}

/** What is needed of XState's scope of an actor. */
interface Scope {
  readonly self: unknown
  readonly system: unknown
  defer(run: () => void): void
}

interface Internals {
  _relay(source: AnyActorRef, target: AnyActorRef, event: AnyEventObject): void
}

const API = Symbol('api')

/** What an actor sends leaves by one door, once per transition: a closure for each event would be garbage for each event. */
class FlatApi<E extends EventObject> implements Api<E> {
  readonly self: Api<E>['self']
  readonly system: Api<E>['system']
  readonly #scope: { defer(run: () => void): void }
  /** Receiver and event in turn. */
  #outbox: (AnyActorRef | string | AnyEventObject)[] = []
  /** Takes what is sent while the other is emptied. */
  #spare: (AnyActorRef | string | AnyEventObject)[] = []
  readonly #post = (): void => this.#flush()

  constructor(scope: Scope) {
    this.self = scope.self as unknown as Api<E>['self']
    this.system = scope.system as unknown as Api<E>['system']
    this.#scope = scope
  }

  send(to: AnyActorRef | string, event: AnyEventObject): void {
    if (this.#outbox.push(to, event) === 2) this.#scope.defer(this.#post)
  }

  later(event: E, ms: number, id: string): void {
    this.system.scheduler.schedule(this.self as AnyActorRef, this.self as AnyActorRef, event, ms, id)
  }

  cancel(id: string): void {
    this.system.scheduler.cancel(this.self as AnyActorRef, id)
  }

  defer(run: () => void): void {
    this.#scope.defer(run)
  }

  /** In the order in which they were sent. What is sent meanwhile is of the next transition, and leaves with that. */
  #flush(): void {
    const letters = this.#outbox
    this.#outbox = this.#spare
    const relay = this.system as unknown as Internals
    for (let at = 0; at < letters.length; at += 2) {
      const to = letters[at] as AnyActorRef | string
      const target = typeof to === 'string' ? (this.system.get(to) as AnyActorRef | undefined) : to
      if (target !== undefined) relay._relay(this.self as AnyActorRef, target, letters[at + 1] as AnyEventObject)
    }
    letters.length = 0
    this.#spare = letters
  }
}

/** One api per actor, made on first use and kept with its scope: a weak map of them would slow every garbage collection. */
export const apiFor = <E extends EventObject>(scope: object): Api<E> => {
  const known = scope as Scope & { [API]?: Api<E> }
  known[API] ??= new FlatApi<E>(known)
  return known[API]
}
