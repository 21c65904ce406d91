import type { AliasConfig } from '../domain/config'
import { globKey, isGlob, isMoreSpecific, matchesGlob } from '../domain/glob'
import { modelKey } from '../domain/job'

/** An alias with its whole chain: aliases in it are replaced by theirs. */
export interface Alias {
  /** As the configuration writes it. */
  readonly name: string
  /** Names of models, in the order in which they are tried; each once. */
  readonly models: readonly string[]
  /** A stand-in need only be able to do what the request needs, not all that the first one can. */
  readonly acrossKinds: boolean
}

export interface Aliases {
  /** The alias of exactly that name. */
  exact(name: string): Alias | undefined
  /** The most specific pattern that covers the name. */
  pattern(name: string): Alias | undefined
  /** Those that are no patterns, in the order of the configuration. */
  readonly listed: readonly Alias[]
}

/** Names once each, compared as models are. */
export const distinct = (names: readonly string[]): readonly string[] => {
  const keys = new Set<string>()
  return names.filter((name) => {
    const key = modelKey(name)
    return !keys.has(key) && keys.add(key)
  })
}

/** `m` is `m:latest` too, for patterns that ask for the tag; a colon before the last slash parts a host from its port. */
const spellings = (name: string): readonly string[] => {
  const key = modelKey(name)
  return key.includes(':', key.lastIndexOf('/') + 1) ? [key] : [key, `${key}:latest`]
}

/** A name that leads back to itself is left out: the configuration's check does not let that through. */
const expand = (of: ReadonlyMap<string, AliasConfig>, names: readonly string[], above: readonly string[]): string[] =>
  names.flatMap((name) => {
    const key = modelKey(name)
    const alias = of.get(key)
    if (alias === undefined) return [name]
    return above.includes(key) ? [] : expand(of, alias.models, [...above, key])
  })

/** The aliases of a valid configuration. */
export const createAliases = (configured: readonly AliasConfig[]): Aliases => {
  const plain = new Map<string, AliasConfig>()
  for (const alias of configured) if (!isGlob(alias.name)) plain.set(modelKey(alias.name), alias)
  const whole = ({ name, models, acrossKinds }: AliasConfig): Alias => ({
    name,
    models: distinct(expand(plain, models, [modelKey(name)])),
    acrossKinds,
  })
  const exact = new Map([...plain].map(([key, alias]) => [key, whole(alias)]))
  const patterns = configured
    .filter(({ name }) => isGlob(name))
    .map((alias) => ({ pattern: globKey(alias.name.trim()), alias: whole(alias) }))
    .sort((a, b) => (isMoreSpecific(a.pattern, b.pattern) ? -1 : isMoreSpecific(b.pattern, a.pattern) ? 1 : 0))

  return {
    exact: (name) => exact.get(modelKey(name)),
    pattern: (name) => {
      const texts = spellings(name)
      return patterns.find(({ pattern }) => texts.some((text) => matchesGlob(pattern, text)))?.alias
    },
    listed: [...exact.values()],
  }
}
