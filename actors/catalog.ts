import { createIdentities } from '../src/catalog/identity'
import { createNames, type Known, type Names } from '../src/catalog/names'
import { createNaming, namedGateway } from '../src/catalog/naming'
import type { Config } from '../src/domain/config'
import { modelKey } from '../src/domain/job'
import type { IdentityStore } from '../src/ports/identities'
import type { NodeGateway } from '../src/ports/node-gateway'
import type { Member, Roster } from './roster'

interface CatalogDeps {
  readonly gateway: NodeGateway
  readonly now: () => number
  readonly identities?: IdentityStore
  readonly roster: Roster
}

/** The names of models, between clients, the core and the nodes. */
export interface Catalog {
  readonly gateway: NodeGateway
  readonly names: Names
  configure(config: Config): void
  /** The node has left: what it called its models holds for nobody. */
  forget(node: string): void
}

const capabilitiesOn = (member: Member | undefined, key: string) => member?.inventory?.get(key)?.capabilities ?? []

export const createCatalog = (first: Config, { gateway, now, identities: store, roster }: CatalogDeps): Catalog => {
  const nodesOf = ({ nodes }: Config): ReadonlySet<string> => new Set(nodes.map(({ name }) => name))
  let configured = nodesOf(first)
  const identities = createIdentities({ now, isConfigured: (node) => configured.has(node), ...(store && { store }) })
  const known: Known = {
    isListed: (key) => roster.holding(key).size > 0,
    capabilities: (key) => [
      ...new Set([...roster.holding(key)].flatMap((node) => capabilitiesOn(roster.get(node), key))),
    ],
    current: (name) => roster.nameOf(modelKey(name)) ?? identities.current(name),
  }
  let names = createNames(first, known)
  const naming = createNaming({ identities, sameModel: (name) => names.sameModel(name) })

  return {
    gateway: namedGateway(gateway, naming),
    get names() {
      return names
    },
    configure: (config) => {
      configured = nodesOf(config)
      names = createNames(config, known)
    },
    forget: naming.forget,
  }
}
