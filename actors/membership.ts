import type { AnyActorRef } from 'xstate'
import type { Config } from '../src/domain/config'
import type { Admission, NodeDescription } from '../src/domain/node'
import { nodeChanges } from '../src/domain/node-changes'
import type { Journal } from '../src/ports/journal'
import type { Nursery } from './nursery'
import { address, type DispatcherEvent, type NodeEvent, type QueuesEvent, type RequestsEvent } from './protocol'
import type { Roster } from './roster'
import { stop } from './spawn'
import { axesOf } from './view'

/** The root's own things, for the steps below; `self` is the parent of every child. */
export interface Household {
  readonly nursery: Nursery
  readonly roster: Roster
  readonly journal: Journal
  readonly now: () => number
  /** How a node that joins begins. */
  readonly admissionOf: (node: string) => Admission
  /** Live children by address. */
  readonly children: Map<string, AnyActorRef>
  readonly self: AnyActorRef
}

type Told = QueuesEvent | DispatcherEvent | RequestsEvent

const tell = ({ children }: Household, to: string, event: Told): void => children.get(to)?.send(event)

/** A new actor of a node, which takes over what an operator said of it. */
export const startNode = (
  { nursery, children, self }: Pick<Household, 'nursery' | 'children' | 'self'>,
  node: NodeDescription,
  admission: Admission,
): void => {
  const actor = nursery.node(self, node)
  children.set(address.node(node.name), actor)
  if (admission !== 'open') actor.send({ type: admission === 'paused' ? 'node.pause' : 'node.drain' })
}

/** A node joins; nothing happens when one of that name is there. */
export const addNode = (house: Household, node: NodeDescription): void => {
  const { roster, journal, now, admissionOf } = house
  if (roster.get(node.name) !== undefined) return
  // What a node of that name left running has a queue there still.
  tell(house, address.queues, { type: 'queues.open', node: node.name })
  startNode(house, node, admissionOf(node.name))
  journal.record({ type: 'node.added', at: now(), node: node.name, kind: node.kind, url: node.url })
}

/** A node leaves: whoever waits for it asks again, running answers end by themselves. */
const dismiss = (house: Household, name: string, reason: string): boolean => {
  const { children, roster } = house
  const id = address.node(name)
  const child = children.get(id)
  const member = roster.leave(name)
  if (child === undefined || member === undefined) return false
  children.delete(id)
  tell(house, address.queues, { type: 'queues.close', node: name, reason })
  tell(house, address.dispatcher, { type: 'node.gone', node: name })
  stop(member.runtime)
  stop(member.poller)
  stop(child)
  return true
}

export const removeNode = (house: Household, name: string): void => {
  if (!dismiss(house, name, 'node_removed')) return
  house.journal.record({ type: 'node.removed', at: house.now(), node: name })
}

/** Another server under the same name; an operator's pause or drain stays. */
const replaceNode = (house: Household, node: NodeDescription): void => {
  const { roster, journal, now } = house
  const { name, kind, url } = node
  const member = roster.get(name)
  const admission = member === undefined ? 'open' : axesOf(member).admission
  if (!dismiss(house, name, 'node_replaced')) return
  tell(house, address.queues, { type: 'queues.open', node: name })
  startNode(house, node, admission)
  journal.record({ type: 'node.changed', at: now(), node: name, kind, url, replaced: true })
}

const updateNode = (house: Household, node: NodeDescription): void => {
  const { roster, journal, now } = house
  const member = roster.get(node.name)
  if (member === undefined) return
  // One that was left down after too many crashes gets another chance.
  if (member.node.getSnapshot().status !== 'active') {
    replaceNode(house, node)
    return
  }
  roster.join({ ...member, description: node })
  const { name, kind, url } = node
  journal.record({ type: 'node.changed', at: now(), node: name, kind, url, replaced: false })
}

/** Another configuration: numbers hold for what begins from now on; added nodes come before removed ones go. */
export const configure = (house: Household, config: Config): void => {
  const { roster, nursery } = house
  nursery.configure(config)
  tell(house, address.requests, { type: 'requests.configure', config })
  tell(house, address.queues, {
    type: 'queues.configure',
    limit: config.limits.queuePerNode,
    rules: config.priorities,
  })
  const { added, removed, updated, replaced } = nodeChanges(
    [...roster.members()].map(({ description }) => description),
    config.nodes,
  )
  for (const node of updated) updateNode(house, node)
  for (const node of added) addNode(house, node)
  for (const node of replaced) replaceNode(house, node)
  for (const name of removed) removeNode(house, name)
  for (const { description, node } of roster.members())
    node.send({ type: 'node.configure', node: description, health: config.health } satisfies NodeEvent)
  tell(house, address.dispatcher, { type: 'dispatcher.configure', config })
}
