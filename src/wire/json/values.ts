import { RouterError } from '../../domain/errors'
import { decode } from '../bytes'
import { skip } from './cursor'

export type Json = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const invalid = (message: string, param?: string): RouterError =>
  new RouterError('invalid_request', message, param === undefined ? {} : { param })

const byteOrderMarkLength = 3
const firstOfByteOrderMark = 0xef

/**
 * Parses a client's body; throws `invalid_request`. The parser's own words are left out: they quote the body. What is
 * nested too deep is refused first: the parser would take it, and writing it again would exhaust the stack for seconds.
 */
export const parseBody = (bytes: Uint8Array): Json => {
  if (bytes.length === 0) throw invalid('The body is empty; a JSON object is expected.')
  skip({ bytes, at: bytes[0] === firstOfByteOrderMark ? byteOrderMarkLength : 0 })
  try {
    const value: unknown = JSON.parse(decode(bytes))
    if (isObject(value)) return value
  } catch {
    throw invalid('The body is not valid JSON: a string in it holds a control character or an invalid escape.')
  }
  throw invalid('The body must be a JSON object.')
}

/** A node's JSON, or undefined when it is none. */
export const parseReply = (text: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Absent and null are the same: not given. */
const given = (json: Json, key: string): unknown => json[key] ?? undefined

export const numberAt = (json: Json, key: string, param = key): number | undefined => {
  const value = given(json, key)
  if (value === undefined || typeof value === 'number') return value
  throw invalid(`"${param}" must be a number.`, param)
}

export const stringAt = (json: Json, key: string, param = key): string | undefined => {
  const value = given(json, key)
  if (value === undefined || typeof value === 'string') return value
  throw invalid(`"${param}" must be a string.`, param)
}

export const booleanAt = (json: Json, key: string, param = key): boolean | undefined => {
  const value = given(json, key)
  if (value === undefined || typeof value === 'boolean') return value
  throw invalid(`"${param}" must be true or false.`, param)
}

export const objectAt = (json: Json, key: string, param = key): Json | undefined => {
  const value = given(json, key)
  if (value === undefined || isObject(value)) return value
  throw invalid(`"${param}" must be an object.`, param)
}

export const arrayAt = (json: Json, key: string, param = key): readonly unknown[] => {
  const value = given(json, key)
  if (value === undefined) return []
  if (Array.isArray(value)) return value
  throw invalid(`"${param}" must be an array.`, param)
}

/** Drops members without a value, so that absent stays absent on the wire. */
export const compact = (json: Json): Json =>
  Object.fromEntries(Object.entries(json).filter(([, value]) => value !== undefined))
