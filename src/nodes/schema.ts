import { type TSchema, Type } from '@sinclair/typebox'

/** A field that an engine may leave out or send as `null` (Go's empty lists, Python's `None`). */
export const maybe = <S extends TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

/** Bytes in GB (10^9 bytes). */
export const toGb = (bytes: number): number => bytes / 1e9

type Gap<T> = { [K in keyof T]: undefined extends T[K] ? K : null extends T[K] ? K : never }[keyof T]
type Known<T> = Omit<T, Gap<T>> & { [K in Gap<T>]?: NonNullable<T[K]> }

/** The object without the keys that hold `undefined` or `null`, so that "unknown" is always an absent key. */
export const known = <T extends object>(fields: T): Known<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as Known<T>
