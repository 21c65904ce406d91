import type { Config } from '../domain/config'
import type { ConfigValue } from '../domain/facts'
import type { Value } from './read'

/** One key that differs between two configurations, by the names and in the units of the file. */
export interface Change {
  /** Entries of lists by their name: `nodes.box-2.max_concurrency`, `auth.keys.laptop`. */
  readonly key: string
  /** null where there was or is none. */
  readonly from: ConfigValue
  readonly to: ConfigValue
}

export interface Effective {
  readonly config: Config
  readonly values: readonly Value[]
}

type Settings = ReadonlyMap<string, ConfigValue>

/** What differs. An entry of a list that came or went is one change; secrets are compared and never shown. */
export const differences = (before: Effective, after: Effective): readonly Change[] => {
  const old = sorted(before.values)
  const next = sorted(after.values)
  const entries = new Set([...old.entries.keys(), ...next.entries.keys()])
  return [
    ...changesIn('', old.single, next.single),
    ...[...entries].flatMap((entry) => entryChanges(entry, old.entries.get(entry), next.entries.get(entry))),
    ...secretChanges('nodes', secretsOf(before.config).nodes, secretsOf(after.config).nodes),
    ...secretChanges('auth.keys', secretsOf(before.config).keys, secretsOf(after.config).keys),
  ]
}

const isEqual = (a: ConfigValue, b: ConfigValue): boolean => JSON.stringify(a) === JSON.stringify(b)

const changesIn = (prefix: string, old: Settings, next: Settings): readonly Change[] =>
  [...new Set([...old.keys(), ...next.keys()])]
    .map((key) => ({ key: `${prefix}${key}`, from: old.get(key) ?? null, to: next.get(key) ?? null }))
    .filter(({ from, to }) => !isEqual(from, to))

const entryChanges = (key: string, old: Settings | undefined, next: Settings | undefined): readonly Change[] =>
  old !== undefined && next !== undefined
    ? changesIn(`${key}.`, old, next)
    : [{ key, from: summaryOf(old), to: summaryOf(next) }]

/** What says most about a whole entry: a node's address, a key's scopes. */
const summaryOf = (entry: Settings | undefined): ConfigValue =>
  entry?.get('url') ?? entry?.get('base_url') ?? entry?.get('scopes') ?? entry?.get('names') ?? null

const ENTRY = /^(nodes|same_model|auth\.keys)\[(\d+)\]\.(.+)$/
/** Shown while they are empty. */
const LISTS = new Set(['nodes', 'aliases', 'same_model', 'auth.keys'])

/** Keys of their own, and those of list entries by the entry's name, since its position may change. */
const sorted = (values: readonly Value[]) => {
  const single = new Map<string, ConfigValue>()
  const byIndex = new Map<string, Map<string, ConfigValue>>()
  for (const { key, value } of values) {
    const [, list, index, inner] = ENTRY.exec(key) ?? []
    if (inner === undefined) {
      if (!LISTS.has(key)) single.set(key, value)
      continue
    }
    const entry = byIndex.get(`${list}[${index}]`) ?? new Map<string, ConfigValue>()
    byIndex.set(`${list}[${index}]`, entry.set(inner, value))
  }
  const entries = new Map<string, Settings>()
  for (const [position, entry] of byIndex)
    entries.set(`${position.slice(0, position.indexOf('['))}.${entry.get('name') ?? entry.get('id')}`, entry)
  return { single, entries }
}

const secretsOf = ({ nodes, auth }: Config) => ({
  nodes: new Map(nodes.map(({ name, key }) => [name, key])),
  keys: new Map(auth.keys.map(({ name, sha256 }) => [name, sha256])),
})

type Secrets = ReadonlyMap<string, string | undefined>

const secretChanges = (list: string, old: Secrets, next: Secrets): readonly Change[] =>
  [...next]
    .filter(([name, secret]) => old.has(name) && old.get(name) !== secret)
    .map(([name]) => ({ key: `${list}.${name}.key`, from: 'secret', to: 'changed' }))
