import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { Listener } from './listen'
import type { Format } from './shape'

/**
 * The kinds of values that a key may have. Each is a plain JSON schema with a few words of our own (`format`, `later`,
 * `noun`, …, see `shape.ts`). The static type is that of the decoded value: a duration is milliseconds.
 */

/** Timers count in 31 bits of milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = '24d'

/** A duration with its unit; bounds are durations too. */
export const duration = (byDefault?: string, { min = '1ms', max = LONGEST_TIMER } = {}) =>
  Type.Unsafe<number>({
    type: 'string',
    format: 'duration',
    ...(byDefault === undefined ? {} : { default: byDefault }),
    minDuration: min,
    maxDuration: max,
  })

export const wholeNumber = (min: number, max: number, options: { default?: number; fileOnly?: boolean } = {}) =>
  Type.Integer({ minimum: min, maximum: max, ...options })

/** A number above zero, with decimals where wanted. */
export const positive = (max: number, byDefault?: number) =>
  Type.Number({ exclusiveMinimum: 0, maximum: max, ...(byDefault === undefined ? {} : { default: byDefault }) })

export const atLeastZero = (byDefault: number) => Type.Number({ minimum: 0, maximum: 1e6, default: byDefault })

/** Between nothing and everything. */
export const share = (byDefault: number) => Type.Number({ minimum: 0, maximum: 1, default: byDefault })

/** What something counts for; below zero it counts the other way. */
export const points = (byDefault: number) => Type.Number({ minimum: -1e6, maximum: 1e6, default: byDefault })

export const yesNo = (byDefault: boolean) => Type.Boolean({ default: byDefault })

interface WordOptions {
  /** As in `"x" is not a <noun>`; its first word says what a word of a later version is. */
  readonly noun: string
  readonly default?: string
  /** Words of later versions, so that they are not mistaken for typing errors. */
  readonly later?: readonly string[]
}

export const word = <const W extends string>(words: readonly W[], options: WordOptions) =>
  Type.Unsafe<W>({ type: 'string', enum: [...words], ...options })

export const text = (format: Exclude<Format, 'duration' | 'listen'>, options: { default?: string } = {}) =>
  Type.Unsafe<string>({ type: 'string', format, ...options })

export const listener = (byDefault: string) =>
  Type.Unsafe<Listener>({ type: 'string', format: 'listen', default: byDefault })

export const list = <T extends TSchema>(items: T, options: { default?: readonly Static<T>[] } = {}) =>
  Type.Array(items, options)

/** A table; `later` names keys of later versions. */
export const table = <P extends TProperties>(properties: P, later: readonly string[] = []): TObject<P> =>
  Type.Object(properties, { additionalProperties: false, later })

/** A table whose keys are the user's to choose; a value has that one of the shapes which its form fits. */
export const named = <const S extends readonly TSchema[]>(...shapes: S) =>
  Type.Unsafe<Record<string, Static<S[number]>>>({
    type: 'object',
    properties: {},
    additionalProperties: { anyOf: shapes },
    later: [],
  })

/** A list of tables, written `[[name]]`. */
export const tables = <P extends TProperties>(properties: P, later: readonly string[] = []) =>
  Type.Array(table(properties, later), { default: [] })

export const optional = Type.Optional
