import type { AnyActorRef } from 'xstate'
import type { Fact } from '../../src/domain/facts'
import type { NodeReport } from '../../src/domain/node'
import type { host } from './host'

export type Host = ReturnType<typeof host>

/** An event that no sender sends, so that whoever hears it throws. */
export const poison = (actor: AnyActorRef | undefined, type: string): void => actor?.send({ type } as never)

export const actorOf = ({ fleet }: Host, id: string): AnyActorRef => fleet.root.system.get(id as never) as AnyActorRef
export const idOf = ({ job }: { job: { id: string } }): string => `request/${job.id}`
export const stateOf = ({ fleet }: Host, id: string): string | undefined =>
  fleet.actors().find((actor) => actor.id === id)?.state

/** Starts and ends whatever runs until nothing does. */
export const runAll = async ({ gateway, clock }: Host): Promise<void> => {
  while (gateway.running.length > 0) {
    const [first] = gateway.running
    first?.start()
    first?.finish()
    await clock.advance(0)
  }
}

export const onceOn = (matches: (fact: Fact) => boolean) => {
  let isDone = false
  return (fact: Fact): void => {
    if (isDone || !matches(fact)) return
    isDone = true
    throw new Error('injected')
  }
}

/** A node that has `x` on its disk and nothing in memory. */
export const COLD: NodeReport = {
  models: [{ name: 'x', sizeGb: 5 }],
  resident: [],
  canLoad: true,
  canUnload: true,
  memoryGb: 24,
}
