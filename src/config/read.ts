import { decode } from './decode'
import type { Refused } from './formats'
import { nearest } from '../domain/nearest'
import { failure, type Place, type Problem, showPlace } from './problem'
import { freeShapes, type LeafShape, type ListShape, type Shape, type TableShape } from './shape'
import type { List, Located, Scalar, Table } from './tree'

export type Shown = string | number | boolean | null | readonly string[]

/** One effective setting as `fleet check` shows it: as it was written, with its unit. */
export interface Value {
  readonly key: string
  readonly value: Shown
  /** `default`, `fleet.toml:12`, `env FLEET_SERVER_LISTEN` or `flag`. */
  readonly origin: string
  /** The value is withheld. */
  readonly secret?: true
}

/** What reading gathers on its way through the schema. */
export interface Reading {
  readonly problems: Problem[]
  readonly values: Value[]
  /** Where each key that was set stands, by path; entries of lists by the path of the entry. */
  readonly places: Map<string, Place>
  /** Variables and flags by the path of the key that they set. */
  readonly overrides: ReadonlyMap<string, Located>
  /** Lines with syntax errors were left out, so what seems to be missing may stand there. */
  readonly isPartial: boolean
}

const WITHHELD = new Set(['key_hash'])

/** The decoded content of a table, defaults filled in; keys without value are absent. Problems go to `reading`. */
export const readTable = (
  shape: TableShape,
  table: Table | undefined,
  path: string,
  reading: Reading,
): Record<string, unknown> => {
  reportUnknownKeys(shape, table, path, reading)
  const result: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(shape.properties)) {
    const keyPath = path === '' ? name : `${path}.${name}`
    const given = reading.overrides.get(keyPath) ?? table?.entries.get(name)?.value
    if (given) reading.places.set(keyPath, given.at)
    const isMissing = given === undefined && inner.default === undefined && inner.type !== 'object'
    if (isMissing && shape.required?.includes(name)) reportMissing(name, table, path, reading)
    else {
      const value = readValue(inner, given, keyPath, reading)
      if (value !== undefined) result[name] = value
    }
  }
  return { ...result, ...readFree(shape, table, path, reading) }
}

/** Values under keys of the user's choosing. Their places are those of the keys. */
const readFree = (shape: TableShape, table: Table | undefined, path: string, reading: Reading): object => {
  const shapes = freeShapes(shape)
  if (shapes.length === 0) return {}
  if (!table?.entries.size)
    reading.values.push({ key: path, value: [], origin: table === undefined ? 'default' : originOf(table.at) })
  const entries = [...(table?.entries ?? [])].flatMap(([name, { at, value: given }]): [string, unknown][] => {
    const fitting = shapes.find((inner) => formOf(inner) === given.type)
    const keyPath = `${path}.${name}`
    reading.places.set(keyPath, at)
    const value = fitting && readValue(fitting, given, keyPath, reading)
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(entries)
}

const formOf = ({ type }: Shape): Located['type'] =>
  type === 'object' ? 'table' : type === 'array' ? 'list' : 'scalar'

const readValue = (shape: Shape, given: Located | undefined, path: string, reading: Reading): unknown => {
  if (shape.type === 'object')
    return readTable(shape, expectTable(given, `[${path}] must be a table`, path, reading), path, reading)
  if (shape.type === 'array') return readList(shape, given, path, reading)
  if (given === undefined) return readDefault(shape, path, reading)
  if (given.type !== 'scalar') {
    const what = given.type === 'list' ? 'a list' : 'a table'
    reading.problems.push(failure('wrong_type', path, `${path} must be a single value, not ${what}`, given.at))
    return readDefault(shape, path, { ...reading, values: [] })
  }
  return readScalar(shape, given, path, reading)
}

const readScalar = (shape: LeafShape, scalar: Scalar, path: string, reading: Reading): unknown => {
  const key = path.slice(path.lastIndexOf('.') + 1)
  const decoded = decode(shape, scalar)
  if (!decoded.ok) {
    reading.problems.push(problemOf(decoded, path, scalar.at))
    return readDefault(shape, path, { ...reading, values: [] })
  }
  const written = scalar.kind === 'raw' && shape.type !== 'string' ? (decoded.value as Shown) : scalar.value
  const value: Value = { key: path, value: written, origin: originOf(scalar.at) }
  reading.values.push(WITHHELD.has(key) ? { ...value, value: null, secret: true } : value)
  return decoded.value
}

const problemOf = (decoded: Refused, path: string, at: Place): Problem => {
  const { code, message, says, suggestion, notes } = decoded
  return failure(code, path, message ?? `${path} ${says}`, at, {
    ...(suggestion === undefined ? {} : { suggestion }),
    ...(notes === undefined ? {} : { notes }),
  })
}

/** Defaults are written as a user would write them and decoded by the same code. Optional entries show nothing. */
const readDefault = (shape: LeafShape, path: string, reading: Reading): unknown => {
  const isEntryOfList = path.includes('[')
  if (shape.default === undefined) {
    if (!isEntryOfList) reading.values.push({ key: path, value: null, origin: 'default' })
    return undefined
  }
  reading.values.push({ key: path, value: shape.default as Shown, origin: 'default' })
  const kind = shape.type === 'integer' ? 'integer' : shape.type === 'number' ? 'float' : shape.type
  const decoded = decode(shape, { type: 'scalar', at: { file: 'default' }, kind, value: shape.default as string })
  return decoded.ok ? decoded.value : undefined
}

const readList = (shape: ListShape, given: Located | undefined, path: string, reading: Reading): unknown => {
  const { items } = shape
  if (given === undefined) {
    if (shape.default !== undefined)
      reading.values.push({ key: path, value: shape.default as string[], origin: 'default' })
    return shape.default
  }
  if (given.type !== 'list') {
    const rule = items.type === 'object' ? `a list of tables, written [[${path}]]` : 'a list, such as ["a", "b"]'
    reading.problems.push(failure('wrong_type', path, `${path} must be ${rule}`, given.at))
    return shape.default
  }
  if (items.type !== 'object') return readScalars(items, given, path, reading)
  if (given.items.length === 0) reading.values.push({ key: path, value: [], origin: originOf(given.at) })
  return given.items.map((item, index) => readEntry(items, item, `${path}[${index}]`, reading))
}

const readEntry = (shape: TableShape, item: Located, path: string, reading: Reading): unknown => {
  reading.places.set(path, item.at)
  const table = expectTable(item, `${path} must be a table`, path, reading)
  return table ? readTable(shape, table, path, reading) : {}
}

/** A list of single values is one line of the overview. */
const readScalars = (shape: LeafShape, list: List, path: string, reading: Reading): unknown => {
  const inner: Reading = { ...reading, values: [] }
  const values = list.items.map((item, index) => readValue(shape, item, `${path}[${index}]`, inner))
  const shown = inner.values.map(({ value }) => String(value))
  reading.values.push({ key: path, value: shown, origin: originOf(list.at) })
  return values.filter((value) => value !== undefined)
}

const expectTable = (
  given: Located | undefined,
  message: string,
  path: string,
  reading: Reading,
): Table | undefined => {
  if (given === undefined || given.type === 'table') return given
  reading.problems.push(failure('wrong_type', path, message, given.at))
  return undefined
}

const reportMissing = (name: string, table: Table | undefined, path: string, reading: Reading): void => {
  if (reading.isPartial) return
  reading.problems.push(failure('missing_key', `${path}.${name}`, `${path} has no "${name}"`, table?.at))
}

const reportUnknownKeys = (shape: TableShape, table: Table | undefined, path: string, reading: Reading): void => {
  if (freeShapes(shape).length > 0) return
  for (const [name, entry] of table?.entries ?? []) {
    if (Object.hasOwn(shape.properties, name)) continue
    const keyPath = path === '' ? name : `${path}.${name}`
    reading.problems.push(unknownKey(shape, name, keyPath, entry.value, entry.at))
  }
}

/** Words under which people write a secret itself, for tables that take one by name. */
const SECRET_KEYS = new Set(['key', 'api_key', 'apikey', 'token', 'secret', 'password'])

const unknownKey = (shape: TableShape, name: string, path: string, value: Located, at: Place): Problem => {
  if (shape.later.includes(name)) {
    return failure('not_in_this_version', path, `${asWritten(path, value)} is not in this version of fleet`, at)
  }
  const known = Object.keys(shape.properties)
  if (SECRET_KEYS.has(name) && known.includes('key_env')) {
    const ways = known.filter((key) => key.startsWith('key_')).join(', ')
    const notes = [`use one of ${ways}`]
    return failure('secret_in_file', path, `"${name}" would put a secret into the file`, at, { notes })
  }
  const suggestion = nearest(name, known)
  return failure('unknown_key', path, `unknown key "${name}"`, at, suggestion === undefined ? {} : { suggestion })
}

const asWritten = (path: string, value: Located): string => {
  if (value.type === 'table') return `[${path}]`
  return value.type === 'list' && value.items.some(({ type }) => type === 'table') ? `[[${path}]]` : path
}

/** The file's column does not matter to somebody who looks for a value. */
const originOf = (at: Place): string =>
  showPlace(at.line === undefined ? { file: at.file } : { file: at.file, line: at.line })
