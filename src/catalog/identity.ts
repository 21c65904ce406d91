import { modelKey } from '../domain/job'
import type { Holding, IdentityStore, Lineage } from '../ports/identities'

/** Names are remembered up to this number; further ones are told apart by nothing. */
const MAX_LINEAGES = 10_000
/** After the start, nodes that were here in the last run count as being here for so long, in ms. */
const SETTLE_MS = 60_000

/** A model as a node lists it. */
export interface Listed {
  readonly name: string
  /** Hash of the weights; absent counts as equal to the first that is known under the name. */
  readonly digest?: string
}

export interface IdentityDeps {
  readonly now: () => number
  /** The configuration names the node, so that it counts as being here also while it does not answer. */
  readonly isConfigured: (node: string) => boolean
  readonly store?: IdentityStore
}

/**
 * Tells apart models that share a name and not the weights: the first keeps the name, each further one gets a number that
 * it keeps (`qwen3:8b-2`), whatever comes and goes. What a node updates in place keeps the name, once no other node has the
 * old weights; nodes that update one after the other so end under one name again, and the number stays understood.
 */
export interface Identities {
  /** Takes in what a node lists now; the fleet's name of each, in the same order. */
  take(node: string, models: readonly Listed[]): readonly string[]
  /** Today's name of a model that was called by the given one. */
  current(name: string): string
  /** The node has left the fleet, or another server stands in its place. */
  forget(node: string): void
}

type Model = Lineage['models'][number]

const withoutLatest = (name: string): string => name.trim().replace(/:latest$/i, '')

const numbered = (name: string, number: number): string => (number === 1 ? name : `${withoutLatest(name)}-${number}`)

const plainDigest = (digest = ''): string => digest.toLowerCase().replace(/^sha256:/, '')

export const createIdentities = ({ now, isConfigured, store }: IdentityDeps): Identities => {
  const startedAt = now()
  const lineages = new Map<string, Lineage>()
  /** Names given with a number, by key: whose they are. */
  const given = new Map<string, { readonly key: string; readonly number: number }>()
  /** Keys that a node listed since the start. */
  const seen = new Set<string>()
  /** Keys with a hash that each node listed last. */
  const listedBy = new Map<string, ReadonlySet<string>>()

  const enter = (lineage: Lineage): Lineage => {
    lineages.set(lineage.key, lineage)
    const numbers = [...lineage.models, ...lineage.merged].map(({ number }) => number)
    for (const number of numbers) {
      if (number > 1) given.set(modelKey(numbered(lineage.key, number)), { key: lineage.key, number })
    }
    return lineage
  }
  for (const lineage of store?.load().slice(0, MAX_LINEAGES) ?? []) enter(lineage)

  const isHere = (node: string): boolean => isConfigured(node) || listedBy.has(node) || now() - startedAt < SETTLE_MS

  /** No other node that is here has these weights under this name. */
  const isVacant = ({ holders }: Lineage, digest: string, node: string): boolean =>
    Object.entries(holders).every(
      ([name, holding]) => name === node || holding.digest !== digest || !holding.isListed || !isHere(name),
    )

  const isTaken = (key: string, own: string): boolean =>
    key !== own && (given.has(key) || seen.has(key) || lineages.has(key))

  /** The least number that gives a name which nothing else has. */
  const freeNumber = ({ key, models, merged }: Lineage): number => {
    const used = new Set([...models, ...merged].map(({ number }) => number))
    let number = given.has(key) ? 2 : 1
    while (used.has(number) || isTaken(modelKey(numbered(key, number)), key)) number++
    return number
  }

  /** `model` is what these weights are called from now on. */
  const renamed = (lineage: Lineage, model: Model, digest: string): Lineage => ({
    ...lineage,
    models: lineage.models.map((one) => (one === model ? { ...one, digest } : one)),
  })

  const merge = (lineage: Lineage, from: Model, into: Model): Lineage => {
    const { models, merged } = renamed(lineage, into, from.digest)
    return {
      ...lineage,
      models: models.filter((model) => model !== from),
      merged: [
        ...merged.map((one) => (one.into === from.number ? { ...one, into: into.number } : one)),
        { number: from.number, into: into.number },
      ],
    }
  }

  /** The lineage in which the digest has a name. */
  const placed = (lineage: Lineage, node: string, digest: string): Lineage => {
    const { models, holders } = lineage
    const known = models.find((model) => model.digest === digest)
    const before = holders[node]?.digest
    const left = before === digest ? undefined : models.find((model) => model.digest === before)
    const updated = left !== undefined && isVacant(lineage, left.digest, node) ? left : undefined
    if (known !== undefined) {
      return updated !== undefined && updated.number < known.number ? merge(lineage, known, updated) : lineage
    }
    const [first] = models
    const isFree =
      first !== undefined && (first.digest === '' || (first.number === 1 && isVacant(lineage, first.digest, node)))
    const heir = updated ?? (isFree ? first : undefined)
    if (heir !== undefined) return renamed(lineage, heir, digest)
    return { ...lineage, models: [...models, { number: freeNumber(lineage), digest }] }
  }

  const hold = (lineage: Lineage, node: string, holding: Holding): Lineage => {
    const before = lineage.holders[node]
    if (before?.digest === holding.digest && before.isListed === holding.isListed) return lineage
    return { ...lineage, holders: { ...lineage.holders, [node]: holding } }
  }

  const keep = (before: Lineage | undefined, after: Lineage): void => {
    if (before === after) return
    enter(after)
    store?.save(after)
  }

  const numberOf = (node: string, { name, digest: written }: Listed): number => {
    const key = modelKey(name)
    const digest = plainDigest(written)
    const before = lineages.get(key)
    if (before === undefined && (digest === '' ? !given.has(key) : lineages.size >= MAX_LINEAGES)) return 1
    const empty: Lineage = { key, models: [], merged: [], holders: {} }
    if (digest === '') {
      const after = before ?? placed(empty, node, '')
      keep(before, after)
      return after.models[0]?.number ?? 1
    }
    const after = hold(placed(before ?? empty, node, digest), node, { digest, isListed: true })
    keep(before, after)
    return after.models.find((model) => model.digest === digest)?.number ?? 1
  }

  return {
    take: (node, models) => {
      for (const { name } of models) if (seen.size < MAX_LINEAGES) seen.add(modelKey(name))
      const names = models.map((model) => numbered(model.name, numberOf(node, model)))
      const hashed = models.filter(({ digest }) => plainDigest(digest) !== '')
      const listed = new Set(hashed.map(({ name }) => modelKey(name)))
      const gone = listedBy.get(node) ?? heldBy(lineages, node)
      listedBy.set(node, listed)
      for (const key of gone) {
        const lineage = lineages.get(key)
        const holding = lineage?.holders[node]
        if (lineage !== undefined && holding !== undefined && !listed.has(key))
          keep(lineage, hold(lineage, node, { ...holding, isListed: false }))
      }
      return names
    },

    current: (name) => {
      const owner = given.get(modelKey(name))
      const merged = lineages.get(owner?.key ?? '')?.merged.find(({ number }) => number === owner?.number)
      return owner === undefined || merged === undefined ? name : numbered(owner.key, merged.into)
    },

    forget: (node) => {
      for (const key of heldBy(lineages, node)) {
        const lineage = lineages.get(key)
        if (lineage === undefined) continue
        const { [node]: _gone, ...holders } = lineage.holders
        keep(lineage, { ...lineage, holders })
      }
      listedBy.delete(node)
    },
  }
}

const heldBy = (lineages: ReadonlyMap<string, Lineage>, node: string): readonly string[] =>
  [...lineages.values()].flatMap(({ key, holders }) => (holders[node]?.isListed === true ? [key] : []))
