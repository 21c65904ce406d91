import { type AnyActorLogic, type AnyActorRef, createActor, type EventObject, fromTransition } from 'xstate'
import { address } from '../../actors/protocol'
import { indexScheduler, spawn } from '../../actors/spawn'
import { VirtualClock } from '../../src/sim/virtual-clock'

export interface Sent {
  readonly to: string
  readonly event: EventObject & Record<string, unknown>
}

/** One actor on virtual time; its neighbours only note what they hear. */
export const alone = (logic: AnyActorLogic, id: string, input: unknown, neighbours: readonly string[] = []) => {
  const clock = new VirtualClock()
  const sent: Sent[] = []
  const listener = (to: string) =>
    fromTransition((state: object, event: EventObject) => {
      sent.push({ to, event })
      return state
    }, {})
  const root = createActor(listener(address.fleet), {
    id: address.fleet,
    systemId: address.fleet,
    clock,
  } as never) as unknown as AnyActorRef
  indexScheduler(root)
  root.subscribe({ error: () => {} })
  root.start()
  for (const name of [address.dispatcher, address.queues, address.requests, ...neighbours])
    if (name !== id) spawn(root, listener(name) as AnyActorLogic, name, undefined)
  const begin = (): AnyActorRef => spawn(root, logic, id, input as never)
  return { root, clock, sent, begin }
}
