import type { Place } from './problem'

/**
 * What was written, before the schema has looked at it: the common form of the file, of JSON in a variable and of a
 * single variable or flag. Every part knows its place.
 */
export type Located = Table | List | Scalar

export interface Table {
  readonly type: 'table'
  readonly at: Place
  readonly entries: ReadonlyMap<string, Entry>
}

export interface Entry {
  /** Where the key stands. */
  readonly at: Place
  readonly value: Located
}

export interface List {
  readonly type: 'list'
  readonly at: Place
  readonly items: readonly Located[]
}

export interface Scalar {
  readonly type: 'scalar'
  readonly at: Place
  /** `raw` is text without a type (a variable or a flag); what it means is up to the key. */
  readonly kind: 'string' | 'integer' | 'float' | 'boolean' | 'raw' | 'other'
  /** The value; the text for `raw`; the literal as written for `other` (dates, null). */
  readonly value: string | number | boolean
}

/** JSON values in the form of the file; all of them are at one place. */
export const fromJson = (value: unknown, at: Place): Located => {
  if (Array.isArray(value)) return { type: 'list', at, items: value.map((item) => fromJson(item, at)) }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, inner]): [string, Entry] => [
      key,
      { at, value: fromJson(inner, at) },
    ])
    return { type: 'table', at, entries: new Map(entries) }
  }
  if (typeof value === 'string') return { type: 'scalar', at, kind: 'string', value }
  if (typeof value === 'boolean') return { type: 'scalar', at, kind: 'boolean', value }
  if (typeof value === 'number')
    return { type: 'scalar', at, kind: Number.isInteger(value) ? 'integer' : 'float', value }
  return { type: 'scalar', at, kind: 'other', value: String(value) }
}
