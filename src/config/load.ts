import { type Config, DEFAULT_PRIORITIES } from '../domain/config'
import { checkListener, effectiveMode, resolveKeys } from './auth'
import { buildConfig, effectiveBufferedMb } from './build'
import { resolveNames } from './names'
import { resolveNodes } from './nodes'
import { readOverrides, unknownVariables } from './overrides'
import { failure, hasErrors, type Place, type Problem } from './problem'
import { type Reading, readTable, type Value } from './read'
import { FleetFile, type Settings } from './schema'
import type { SecretSources } from './secrets'
import type { TableShape } from './shape'
import { readToml } from './toml'
import type { Table } from './tree'

export interface ConfigInput {
  /** `path` is how messages name the file; relative paths of key files start at its folder. */
  readonly file?: { readonly path: string; readonly text: string }
  readonly env: Readonly<Record<string, string | undefined>>
  /** By key path: `{ 'server.listen': ':8080' }`. */
  readonly flags: Readonly<Record<string, string>>
  /** The content of a key file; throws when it cannot be read. */
  readonly readSecret: (path: string) => string
}

export interface LoadedConfig {
  /** Absent when there is any error. */
  readonly config?: Config
  /** In the order of the file, then the rest. */
  readonly problems: readonly Problem[]
  /** Every key with value and origin; those in error are left out. */
  readonly values: readonly Value[]
}

/** The schema as its reader sees it. */
export const fleetShape = FleetFile as unknown as TableShape

const EMPTY: Table = { type: 'table', at: { file: 'default' }, entries: new Map() }

/**
 * The effective configuration: flag over variable over file over default. Reports all problems at once and never
 * throws. Pure but for `readSecret`.
 */
export const loadConfig = (input: ConfigInput): LoadedConfig => {
  const { file, env, flags, readSecret } = input
  const { root, problems: syntax } = file ? readToml(file.text, file.path) : { root: EMPTY, problems: [] }
  const { overrides, problems: unreadable } = readOverrides(fleetShape, env, flags)
  const reading: Reading = { problems: [], values: [], places: new Map(), overrides, isPartial: syntax.length > 0 }
  // Every key with a default has a value now, right or wrong; a problem anywhere keeps the configuration from being built.
  const settings = readTable(fleetShape, root, '', reading) as unknown as Settings

  const sources: SecretSources = { env, readSecret, ...(file ? { configFile: file.path } : {}) }
  const keys = resolveKeys(settings.auth.keys, reading.places, sources)
  const nodes = resolveNodes(settings.nodes, settings.server.listen, reading.places, sources)
  const names = resolveNames(settings, reading.places)
  const betweenKeys = [
    ...keys.problems,
    ...nodes.problems,
    ...names.problems,
    ...checkListener(settings, reading.places),
    ...checkBuffered(settings, reading.places),
    ...checkBreaker(settings, reading.places),
    ...checkOrder(settings, reading.places),
  ]
  const problems = inOrder([
    ...syntax,
    ...unreadable,
    ...reading.problems,
    // With lines left out, what these miss may stand in one of them.
    ...(reading.isPartial ? [] : betweenKeys),
    ...unknownVariables(fleetShape, env, variablesNamed(settings)),
  ])
  const effective: Readonly<Record<string, () => Value['value']>> = {
    'auth.mode': () => effectiveMode(settings),
    'server.max_buffered_mb': () => effectiveBufferedMb(settings),
  }
  const values = reading.values.map((value) => {
    const inForce = effective[value.key]
    return inForce ? { ...value, value: inForce() } : value
  })
  if (hasErrors(problems)) return { problems, values }
  return { config: buildConfig(settings, keys.keys, nodes.nodes, names), problems, values }
}

const variablesNamed = ({ auth, nodes }: Settings): ReadonlySet<string> =>
  new Set([...auth.keys, ...nodes].flatMap(({ key_env }) => key_env ?? []))

const checkBuffered = ({ server }: Settings, places: ReadonlyMap<string, Place>): readonly Problem[] => {
  const path = 'server.max_buffered_mb'
  const at = places.get(path)
  if (at === undefined || server.max_buffered_mb >= server.max_body_mb) return []
  return [failure('conflict', path, `${path} must not be less than server.max_body_mb (${server.max_body_mb})`, at)]
}

const checkBreaker = ({ health }: Settings, places: ReadonlyMap<string, Place>): readonly Problem[] => {
  if (health.breaker_retry <= health.breaker_retry_max) return []
  const path = 'health.breaker_retry_max'
  const at = places.get(path) ?? places.get('health.breaker_retry')
  return [failure('conflict', path, `${path} must not be shorter than health.breaker_retry`, at)]
}

const checkOrder = ({ priorities }: Settings, places: ReadonlyMap<string, Place>): readonly Problem[] => {
  const { order } = priorities
  if (new Set(order).size === order.length && order.length === DEFAULT_PRIORITIES.order.length) return []
  const path = 'priorities.order'
  const message = `${path} must name each of ${DEFAULT_PRIORITIES.order.join(', ')} once`
  return [failure('conflict', path, message, places.get(path))]
}

/** As they stand in the file; what comes from elsewhere last. */
const inOrder = (problems: readonly Problem[]): readonly Problem[] =>
  problems.toSorted((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || (a.column ?? 0) - (b.column ?? 0) || 0)
