import type { Alias } from '../src/catalog/aliases'
import { modelKey } from '../src/domain/job'
import type { StoredModel } from '../src/domain/node'
import { mayServe } from '../src/placement/filters/not-listed'
import type { Ledger } from '../src/placement/ledger'
import type { ModelView } from '../src/ports/fleet'
import type { Roster } from './roster'
import { axesOf, residentOn } from './view'

type Place = ModelView['nodes'][number]

const sameBy = ({ isDeclared, digest }: StoredModel): NonNullable<Place['sameBy']> => {
  if (isDeclared === true) return 'same_model'
  return digest === undefined ? 'name' : 'hash'
}

/** Every model that some node lists, by name; further names of one stored model are one entry. */
export const modelViews = (roster: Roster, ledger: Ledger): readonly ModelView[] => {
  const views = new Map<string, { name: string; nodes: Place[] }>()
  for (const member of roster.members()) {
    const { description, report } = member
    const resident = residentOn(member)
    const online = ['online', 'suspect'].includes(axesOf(member).health)
    const loading = ledger.loading(description.name)?.model
    for (const stored of report?.models ?? []) {
      if (!mayServe(description, stored)) continue
      const key = modelKey(stored.name)
      const here = resident.find(({ name }) => modelKey(name) === key)
      const state =
        here?.state === 'ready'
          ? 'resident'
          : here !== undefined || (loading !== undefined && modelKey(loading) === key)
            ? 'loading'
            : 'disk'
      const view = views.get(key) ?? { name: stored.name, nodes: [] }
      view.nodes.push({
        node: description.name,
        name: stored.localName ?? stored.name,
        sameBy: sameBy(stored),
        online,
        state,
        stored,
        ...(here === undefined ? {} : { resident: here }),
      })
      views.set(key, view)
    }
  }
  return [...views].map(([key, { name, nodes }]) => ({ key, name, nodes })).sort(byKey)
}

const byKey = (a: ModelView, b: ModelView): number => (a.key < b.key ? -1 : 1)

const isOnline = ({ nodes }: ModelView): boolean => nodes.some(({ online }) => online)

const isWarm = ({ nodes }: ModelView): boolean => nodes.some(({ online, state }) => online && state === 'resident')

/** The model of the chain that would be used now: the first in memory, else the first that could run, else any. */
export const preferred = (chain: readonly string[], models: readonly ModelView[]): ModelView | undefined => {
  const known = chain.flatMap((name) => models.find(({ key }) => key === modelKey(name)) ?? [])
  return known.find(isWarm) ?? known.find(isOnline) ?? known[0]
}

/** The models and the aliases, each name once: an alias stands before a model of its name, as it does for requests. */
export const aliasViews = (models: readonly ModelView[], aliases: readonly Alias[]): readonly ModelView[] => {
  if (aliases.length === 0) return models
  const views = aliases.map(({ name, models: chain }) => {
    const nodes = preferred(chain, models)?.nodes ?? []
    return { name, key: modelKey(name), aliasOf: chain, nodes }
  })
  const keys = new Set(views.map(({ key }) => key))
  return [...models.filter(({ key }) => !keys.has(key)), ...views].sort(byKey)
}
