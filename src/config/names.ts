import type { AliasConfig, SameModelConfig } from '../domain/config'
import { globKey, isGlob } from '../domain/glob'
import { modelKey } from '../domain/job'
import { nearest } from '../domain/nearest'
import { failure, type Place, type Problem, warning } from './problem'
import type { AliasSettings, Settings } from './schema'

type Places = ReadonlyMap<string, Place>

const aliasPath = (name: string): string => `aliases.${name}`

const isList = (settings: AliasSettings): settings is string[] => Array.isArray(settings)

/** Nothing where the table says nothing of models, which its reader has told. */
const aliasOf = (name: string, settings: AliasSettings): readonly AliasConfig[] => {
  if (typeof settings === 'string') return [{ name, models: [settings], acrossKinds: true }]
  if (isList(settings)) return [{ name, models: settings, acrossKinds: true }]
  const { models, across_kinds: acrossKinds } = settings
  return (models as string[] | undefined) === undefined ? [] : [{ name, models, acrossKinds }]
}

/** The names of models that the configuration gives, checked against each other. */
export const resolveNames = (
  settings: Pick<Settings, 'aliases' | 'same_model' | 'nodes' | 'discovery'>,
  places: Places,
): {
  readonly aliases: readonly AliasConfig[]
  readonly sameModel: readonly SameModelConfig[]
  readonly problems: readonly Problem[]
} => {
  const aliases = Object.entries(settings.aliases).flatMap(([name, of]) => aliasOf(name, of))
  const sameModel = settings.same_model.map(({ id, names = [] }) => ({ id, names }))
  const problems = [
    ...aliases.flatMap((alias) => checkAlias(alias, places)),
    ...hiddenAliases(aliases, places),
    ...loops(aliases, places),
    ...checkSameModel(sameModel, places),
    ...hiddenModels(aliases, sameModel, places),
    ...unknownModels(aliases, sameModel, settings, places),
  ]
  return { aliases, sameModel, problems }
}

const checkAlias = ({ name, models }: AliasConfig, places: Places): readonly Problem[] => {
  const path = aliasPath(name)
  const say = (code: 'alias_unused' | 'out_of_range', message: string): Problem =>
    failure(code, path, message, places.get(path))
  const problems: Problem[] = []
  if (name !== name.trim() || name === '' || /\p{Cc}/u.test(name))
    problems.push(say('alias_unused', `alias ${JSON.stringify(name)} can never match the name of a model`))
  if (models.length === 0) problems.push(say('out_of_range', `${path} must name at least one model`))
  for (const model of models) {
    if (isGlob(model))
      problems.push(say('out_of_range', `${path} must name models, and ${JSON.stringify(model)} is a pattern`))
  }
  return problems
}

/** Of two that match the same names only the first is ever used. */
const hiddenAliases = (aliases: readonly AliasConfig[], places: Places): readonly Problem[] => {
  const keyOf = ({ name }: AliasConfig): string => (isGlob(name) ? globKey(name) : modelKey(name))
  return [...Map.groupBy(aliases, keyOf).values()].flatMap(([first, ...others]) =>
    others.map(({ name }) => {
      const path = aliasPath(name)
      const message = `alias "${name}" can never match, "${first?.name}" matches the same names`
      const also = [places.get(aliasPath(first?.name ?? ''))].filter((place) => place !== undefined)
      return failure('alias_unused', path, message, places.get(path), { also })
    }),
  )
}

/** Each circle once, told at the alias of it that comes first. */
const loops = (aliases: readonly AliasConfig[], places: Places): readonly Problem[] => {
  const named = aliases.filter(({ name }) => !isGlob(name)).map((alias) => [modelKey(alias.name), alias] as const)
  // Of two with one name the first is used.
  const plain = new Map(named.toReversed())
  const told = new Set<string>()
  const problems: Problem[] = []
  const follow = (alias: AliasConfig, above: readonly AliasConfig[]): void => {
    const at = above.indexOf(alias)
    if (at < 0) {
      if (told.has(modelKey(alias.name))) return
      for (const model of alias.models) {
        const next = plain.get(modelKey(model))
        if (next !== undefined) follow(next, [...above, alias])
      }
      return
    }
    const circle = above.slice(at)
    if (circle.some(({ name }) => told.has(modelKey(name)))) return
    for (const { name } of circle) told.add(modelKey(name))
    const path = aliasPath(alias.name)
    const way = [...circle, alias].map(({ name }) => name).join(' -> ')
    problems.push(failure('alias_loop', path, `alias "${alias.name}" leads back to itself: ${way}`, places.get(path)))
  }
  for (const [, alias] of named) follow(alias, [])
  return problems
}

const checkSameModel = (sameModel: readonly SameModelConfig[], places: Places): readonly Problem[] => {
  const owners = new Map<string, number>()
  return sameModel.flatMap(({ id, names }, index) => {
    const path = `same_model[${index}]`
    const say = (key: string, message: string): Problem =>
      failure('conflict', `${path}.${key}`, message, places.get(`${path}.${key}`) ?? places.get(path))
    const problems: Problem[] = []
    if (names.length === 0) problems.push(say('names', `${path}.names must hold at least one name`))
    for (const name of new Set([id, ...names].map(modelKey))) {
      const owner = owners.get(name)
      const key = name === modelKey(id) ? 'id' : 'names'
      if (isGlob(name)) problems.push(say(key, `${path}.${key} must hold names of models, and "${name}" is a pattern`))
      if (owner === undefined) owners.set(name, index)
      else problems.push(say(key, `"${name}" is a name of same_model[${owner}] already`))
    }
    return problems
  })
}

/** The alias is asked first, so nobody would ever reach the model under that name. */
const hiddenModels = (
  aliases: readonly AliasConfig[],
  sameModel: readonly SameModelConfig[],
  places: Places,
): readonly Problem[] => {
  const names = new Map(sameModel.flatMap(({ id, names }) => [id, ...names].map((name) => [modelKey(name), id])))
  return aliases.flatMap(({ name }) => {
    const id = names.get(modelKey(name))
    const path = aliasPath(name)
    return id === undefined
      ? []
      : [
          failure(
            'conflict',
            path,
            `"${name}" is an alias and a name of same_model "${id}"; keep one`,
            places.get(path),
          ),
        ]
  })
}

/** Only where the configuration says which models there are at all. */
const unknownModels = (
  aliases: readonly AliasConfig[],
  sameModel: readonly SameModelConfig[],
  { nodes, discovery }: Pick<Settings, 'nodes' | 'discovery'>,
  places: Places,
): readonly Problem[] => {
  if (discovery.local || nodes.length === 0 || nodes.some(({ models }) => models === undefined)) return []
  const known = [
    ...nodes.flatMap(({ models = [] }) => models),
    ...sameModel.flatMap(({ id, names }) => [id, ...names]),
    ...aliases.map(({ name }) => name),
  ]
  const keys = new Set(known.map(modelKey))
  return aliases.flatMap(({ name, models }) =>
    models
      .filter((model) => !isGlob(model) && !keys.has(modelKey(model)))
      .map((model) => {
        const path = aliasPath(name)
        const suggestion = nearest(model, known)
        const message = `alias "${name}" names model "${model}", which no node may serve`
        return warning('unknown_value', path, message, places.get(path), suggestion === undefined ? {} : { suggestion })
      }),
  )
}
