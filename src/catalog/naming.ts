import { modelKey } from '../domain/job'
import type { NodeDescription, NodeReport, ResidentModel, StoredModel } from '../domain/node'
import type { NodeGateway } from '../ports/node-gateway'
import type { Identities } from './identity'

export interface NamingDeps {
  readonly identities: Identities
  /** The one name for all that the configuration says are one model. */
  readonly sameModel: (name: string) => string | undefined
}

/** Between the names of each node and those of the fleet. */
export interface Naming {
  /** The report in the fleet's names. */
  inward(node: NodeDescription, report: NodeReport): NodeReport
  /** What the node itself calls the model. */
  local(node: string, model: string): string
  forget(node: string): void
}

interface Named {
  readonly stored: StoredModel
  readonly name: string
  readonly isDeclared: boolean
}

const namesOf = ({ name, aliases = [] }: StoredModel): readonly string[] => [name, ...aliases]

/**
 * Where a node lists one model under several names, requests go to the one that it has in memory, else to the first; the
 * others are not listed.
 */
const oneEach = (named: readonly Named[], resident: ReadonlySet<string>): readonly Named[] => {
  const chosen = new Map<string, Named>()
  for (const one of named) {
    const key = modelKey(one.name)
    const before = chosen.get(key)
    const isWarmer =
      before !== undefined && resident.has(modelKey(one.stored.name)) && !resident.has(modelKey(before.stored.name))
    if (before === undefined || isWarmer) chosen.set(key, one)
  }
  return [...chosen.values()]
}

const renamed = ({ stored, name, isDeclared }: Named): StoredModel => ({
  ...stored,
  ...(name === stored.name ? {} : { name, localName: stored.name }),
  ...(isDeclared ? { isDeclared } : {}),
})

export const createNaming = ({ identities, sameModel }: NamingDeps): Naming => {
  /** By node: the fleet's name, as its key, to the node's own; only where they differ. */
  const locals = new Map<string, ReadonlyMap<string, string>>()

  const nameAll = ({ name: node, origin }: NodeDescription, models: readonly StoredModel[]): readonly Named[] => {
    const declared = models.map((stored) =>
      namesOf(stored)
        .map(sameModel)
        .find((name) => name !== undefined),
    )
    const others = models.filter((_, at) => declared[at] === undefined)
    // What is simulated says nothing about the real model of that name.
    const names = identities.take(node, origin === 'demo' ? others.map(({ name }) => ({ name })) : others)
    let next = 0
    return models.map((stored, at) => {
      const name = declared[at]
      return name === undefined
        ? { stored, name: names[next++] ?? stored.name, isDeclared: false }
        : { stored, name, isDeclared: true }
    })
  }

  return {
    inward: (node, report) => {
      const resident = new Set(report.resident.map(({ name }) => modelKey(name)))
      const named = oneEach(nameAll(node, report.models), resident)
      const changed = named.filter(({ stored, name }) => name !== stored.name)
      locals.set(node.name, new Map(changed.map(({ stored, name }) => [modelKey(name), stored.name])))
      if (changed.length === 0 && named.length === report.models.length && !named.some(({ isDeclared }) => isDeclared))
        return report
      const byLocal = new Map(
        changed.flatMap(({ stored, name }) => namesOf(stored).map((own) => [modelKey(own), name])),
      )
      const inFleet = (model: ResidentModel): ResidentModel => {
        const name = byLocal.get(modelKey(model.name))
        return name === undefined ? model : { ...model, name }
      }
      return { ...report, models: named.map(renamed), resident: report.resident.map(inFleet) }
    },
    local: (node, model) => locals.get(node)?.get(modelKey(model)) ?? model,
    forget: (node) => {
      locals.delete(node)
      identities.forget(node)
    },
  }
}

/** The gateway for a core that knows models by the fleet's names only. */
export const namedGateway = (gateway: NodeGateway, naming: Naming): NodeGateway => ({
  report: async (node, signal) => {
    const report = await gateway.report(node, signal)
    // The node may have left meanwhile.
    return signal.aborted ? report : naming.inward(node, report)
  },
  load: (node, model, { evicts, ...options }, signal) => {
    const own = (name: string): string => naming.local(node.name, name)
    return gateway.load(node, own(model), { ...options, evicts: evicts.map(own) }, signal)
  },
  unload: (node, model, signal) => gateway.unload(node, naming.local(node.name, model), signal),
  forward: (call, listener, signal) => {
    const model = naming.local(call.node.name, call.model)
    return gateway.forward(model === call.model ? call : { ...call, model }, listener, signal)
  },
  cut: (...cut) => gateway.cut(...cut),
})
