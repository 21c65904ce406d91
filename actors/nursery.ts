import type { AnyActorRef } from 'xstate'
import type { Config } from '../src/domain/config'
import type { NodeDescription } from '../src/domain/node'

/** Makes the children of the root; bound in the wiring, which reads as the supervision tree. */
export interface Nursery {
  dispatcher(parent: AnyActorRef): AnyActorRef
  requests(parent: AnyActorRef): AnyActorRef
  queues(parent: AnyActorRef): AnyActorRef
  node(parent: AnyActorRef, node: NodeDescription): AnyActorRef
  /** The requests that run somewhere, as the queues know them. */
  running(): readonly string[]
  /** For children that are made from now on. */
  configure(config: Config): void
}
