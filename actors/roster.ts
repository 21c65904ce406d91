import type { AnyActorRef } from 'xstate'
import { modelKey } from '../src/domain/job'
import type { NodeDescription, NodeReport, StoredModel } from '../src/domain/node'

/** One node as the others find it: its actors and what it last listed. */
export interface Member {
  readonly description: NodeDescription
  readonly node: AnyActorRef
  readonly runtime: AnyActorRef
  readonly poller: AnyActorRef
  /** Undefined until the first report. */
  inventory?: ReadonlyMap<string, StoredModel>
  report?: NodeReport
  lastReportAt?: number
  pollMs?: number
  /** The most models that were seen in its memory at once. */
  mostResident?: number
}

/**
 * Who is there: the one index from model to nodes, so that a decision looks only at nodes that hold the model, however
 * many there are. Written by the fleet (members) and by the pollers (reports) as plain calls; read by everybody.
 */
export interface Roster {
  join(member: Member): void
  leave(name: string): Member | undefined
  get(name: string): Member | undefined
  members(): IterableIterator<Member>
  readonly size: number
  reported(name: string, report: NodeReport, at: number, pollMs: number): void
  /** The node does not know a model that it listed: it counts as not listed until the next report. */
  disown(name: string, key: string): void
  /** Nodes that list the model or hold it. */
  holding(key: string): ReadonlySet<string>
  /** The model for which every node that has this name has it as a further one; undefined where a node's model is called so. */
  nameOf(key: string): string | undefined
  /** Some node, here now or gone, listed it once. */
  wasListed(key: string): boolean
  /** Measured memory of the model where it was last seen loaded, in GB. */
  measuredGb(key: string): number | undefined
  /** Every configured node has answered at least once. */
  allInventoried(): boolean
  /** Every model key that some node lists now. */
  keys(): IterableIterator<string>
  /** Another number whenever a member, what some node lists or a measured size is another; not with every report. */
  readonly revision: number
}

const NONE: ReadonlySet<string> = new Set()

const inventoryOf = (report: NodeReport): Map<string, StoredModel> => {
  const inventory = new Map<string, StoredModel>()
  for (const model of report.models) {
    for (const name of [model.name, ...(model.aliases ?? [])]) {
      const key = modelKey(name)
      if (!inventory.has(key)) inventory.set(key, model)
    }
  }
  for (const resident of report.resident) {
    const key = modelKey(resident.name)
    if (!inventory.has(key)) inventory.set(key, { name: resident.name })
  }
  return inventory
}

/** `left` hears of each member that leaves. */
export const createRoster = (left: (name: string) => void = () => {}): Roster => {
  const members = new Map<string, Member>()
  const byModel = new Map<string, Set<string>>()
  const listed = new Set<string>()
  const sizes = new Map<string, number>()
  let revision = 0

  const unlist = (name: string, keys: Iterable<string>): void => {
    for (const key of keys) {
      revision += 1
      const holders = byModel.get(key)
      holders?.delete(name)
      if (holders?.size === 0) byModel.delete(key)
    }
  }

  return {
    join: (member) => {
      revision += 1
      members.set(member.description.name, member)
    },
    leave: (name) => {
      const member = members.get(name)
      revision += 1
      members.delete(name)
      unlist(name, member?.inventory?.keys() ?? [])
      left(name)
      return member
    },
    get: (name) => members.get(name),
    members: () => members.values(),
    get size() {
      return members.size
    },
    reported: (name, report, at, pollMs) => {
      const member = members.get(name)
      if (member === undefined) return
      const inventory = inventoryOf(report)
      unlist(
        name,
        [...(member.inventory?.keys() ?? [])].filter((key) => !inventory.has(key)),
      )
      for (const key of inventory.keys()) {
        if (member.inventory?.has(key) !== true) revision += 1
        listed.add(key)
        const holders = byModel.get(key)
        if (holders === undefined) byModel.set(key, new Set([name]))
        else holders.add(name)
      }
      for (const { name: model, memoryGb, state } of report.resident) {
        const key = modelKey(model)
        if (memoryGb === undefined || state !== 'ready' || sizes.get(key) === memoryGb) continue
        revision += 1
        sizes.set(key, memoryGb)
      }
      member.inventory = inventory
      member.report = report
      member.lastReportAt = at
      member.pollMs = pollMs
      const ready = report.resident.filter(({ state }) => state === 'ready').length
      member.mostResident = Math.max(member.mostResident ?? 0, ready)
    },
    disown: (name, key) => {
      const member = members.get(name)
      const stored = member?.inventory?.get(key)
      if (member?.inventory === undefined || member.report === undefined || stored === undefined) return
      const keys = [...member.inventory].flatMap(([one, model]) => (model === stored ? [one] : []))
      unlist(name, keys)
      member.inventory = new Map([...member.inventory].filter(([, model]) => model !== stored))
      member.report = { ...member.report, models: member.report.models.filter((model) => model !== stored) }
    },
    holding: (key) => byModel.get(key) ?? NONE,
    nameOf: (key) => {
      let found: string | undefined
      for (const node of byModel.get(key) ?? NONE) {
        const name = members.get(node)?.inventory?.get(key)?.name ?? key
        const isOther = found !== undefined && modelKey(found) !== modelKey(name)
        if (isOther || modelKey(name) === key) return undefined
        found = name
      }
      return found
    },
    wasListed: (key) => listed.has(key),
    measuredGb: (key) => sizes.get(key),
    allInventoried: () => {
      for (const { description, inventory } of members.values()) {
        if (description.origin === 'configured' && inventory === undefined) return false
      }
      return true
    },
    keys: () => byModel.keys(),
    get revision() {
      return revision
    },
  }
}
