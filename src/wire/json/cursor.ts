/**
 * A cursor over the bytes of one JSON document. It checks the grammar and jumps over strings with a native search, so
 * that a picture of a megabyte costs one scan and is never decoded. The inside of strings is not checked.
 */
import { RouterError } from '../../domain/errors'
import { decode } from '../bytes'
import { nameAt } from './names'

export interface Cursor {
  readonly bytes: Uint8Array
  at: number
}

/** Bytes from `start` up to `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

export const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
export const openBrace = 0x7b
const closeBrace = 0x7d
export const openBracket = 0x5b
const closeBracket = 0x5d

/** Deeper nesting than any schema needs; the scan recurses, and a body of brackets must not exhaust the stack. */
const maxDepth = 500

const fail = (cursor: Cursor, what: string): never => {
  throw new RouterError('invalid_request', `The body is not valid JSON: ${what} at byte ${cursor.at}.`)
}

export const space = (cursor: Cursor): void => {
  const { bytes } = cursor
  for (;;) {
    const byte = bytes[cursor.at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return
    cursor.at++
  }
}

/** Skips space and tells the byte that begins the next value. */
export const peekByte = (cursor: Cursor): number | undefined => {
  space(cursor)
  return cursor.bytes[cursor.at]
}

/** Most strings are shorter than what a native call costs. */
const shortHop = 16

const nextQuote = (bytes: Uint8Array, from: number): number => {
  const near = Math.min(from + shortHop, bytes.length)
  for (let at = from; at < near; at++) if (bytes[at] === quote) return at
  return bytes.indexOf(quote, near)
}

/** Passes a string; the span holds its inside, without the quotes. */
export const string = (cursor: Cursor): Span => {
  const { bytes } = cursor
  const start = cursor.at + 1
  let end = cursor.at
  for (;;) {
    end = nextQuote(bytes, end + 1)
    if (end < 0) return fail(cursor, 'a string that begins here has no end')
    let before = end - 1
    while (bytes[before] === backslash) before--
    // An even run of backslashes escapes itself, not the quote.
    if (((end - 1 - before) & 1) === 0) break
  }
  cursor.at = end + 1
  return { start, end }
}

/** The text of a string's inside. */
export const textOf = (cursor: Cursor, span: Span): string => {
  const name = nameAt(cursor.bytes, span.start, span.end)
  if (name !== undefined) return name
  const inside = cursor.bytes.subarray(span.start, span.end)
  if (inside.indexOf(backslash) < 0) return decode(inside)
  try {
    return JSON.parse(`"${decode(inside)}"`) as string
  } catch {
    return fail({ bytes: cursor.bytes, at: span.start }, 'a string holds an invalid escape')
  }
}

const digits = (cursor: Cursor): void => {
  const from = cursor.at
  for (;;) {
    const byte = cursor.bytes[cursor.at] ?? 0
    if (byte < 0x30 || byte > 0x39) break
    cursor.at++
  }
  if (cursor.at === from) fail(cursor, 'a digit is missing')
}

const number = (cursor: Cursor): void => {
  const { bytes } = cursor
  if (bytes[cursor.at] === 0x2d) cursor.at++
  if (bytes[cursor.at] === 0x30) cursor.at++
  else digits(cursor)
  if (bytes[cursor.at] === 0x2e) {
    cursor.at++
    digits(cursor)
  }
  if (((bytes[cursor.at] ?? 0) | 0x20) === 0x65) {
    cursor.at++
    if (bytes[cursor.at] === 0x2b || bytes[cursor.at] === 0x2d) cursor.at++
    digits(cursor)
  }
}

const word = (cursor: Cursor, text: string): void => {
  for (let i = 0; i < text.length; i++)
    if (cursor.bytes[cursor.at + i] !== text.charCodeAt(i)) fail(cursor, 'an unexpected character')
  cursor.at += text.length
}

/** After a value in a list: true when another follows, false when `close` ended the list. */
const another = (cursor: Cursor, close: number): boolean => {
  const byte = peekByte(cursor)
  cursor.at++
  if (byte === comma) return true
  if (byte === close) return false
  cursor.at--
  return fail(cursor, byte === undefined ? 'it ends' : 'an unexpected character')
}

/** Whether the container that begins here has something in it; passes its opening byte, and the closing one if empty. */
const enter = (cursor: Cursor, open: number, close: number): boolean => {
  if (peekByte(cursor) !== open) fail(cursor, cursor.at >= cursor.bytes.length ? 'it ends' : 'an unexpected character')
  cursor.at++
  if (peekByte(cursor) !== close) return true
  cursor.at++
  return false
}

const key = (cursor: Cursor): Span => {
  if (peekByte(cursor) !== quote) fail(cursor, 'a member name is missing')
  const span = string(cursor)
  if (peekByte(cursor) !== colon) fail(cursor, 'a colon is missing')
  cursor.at++
  space(cursor)
  return span
}

/** Passes any value; the span holds all of it, without the space around. */
export const skip = (cursor: Cursor, depth = 0): Span => {
  const byte = peekByte(cursor)
  const start = cursor.at
  if (depth > maxDepth) fail(cursor, `nested deeper than ${maxDepth} levels`)
  if (byte === quote) string(cursor)
  else if (byte === openBrace) {
    for (let more = enter(cursor, openBrace, closeBrace); more; more = another(cursor, closeBrace)) {
      key(cursor)
      skip(cursor, depth + 1)
    }
  } else if (byte === openBracket) {
    for (let more = enter(cursor, openBracket, closeBracket); more; more = another(cursor, closeBracket))
      skip(cursor, depth + 1)
  } else if (byte === 0x74) word(cursor, 'true')
  else if (byte === 0x66) word(cursor, 'false')
  else if (byte === 0x6e) word(cursor, 'null')
  else if (byte === 0x2d || (byte !== undefined && byte >= 0x30 && byte <= 0x39)) number(cursor)
  else fail(cursor, byte === undefined ? 'it ends' : 'an unexpected character')
  return { start, end: cursor.at }
}

/** Walks the members of the object that begins here. `visit` must pass exactly the member's value. */
export const members = (cursor: Cursor, visit: (name: string, keyStart: number) => void): void => {
  for (let more = enter(cursor, openBrace, closeBrace); more; more = another(cursor, closeBrace)) {
    space(cursor)
    const keyStart = cursor.at
    visit(textOf(cursor, key(cursor)), keyStart)
  }
}

/** Walks the elements of the array that begins here. `visit` must pass exactly the element. */
export const elements = (cursor: Cursor, visit: () => void): void => {
  for (let more = enter(cursor, openBracket, closeBracket); more; more = another(cursor, closeBracket)) visit()
}

/** Throws unless only space is left. */
export const finish = (cursor: Cursor): void => {
  if (peekByte(cursor) !== undefined) fail(cursor, 'something follows its end')
}

/** Reads a small value: number, word, short string or object. */
export const value = (cursor: Cursor): unknown => {
  const span = skip(cursor)
  try {
    return JSON.parse(decode(cursor.bytes.subarray(span.start, span.end)))
  } catch {
    return fail({ bytes: cursor.bytes, at: span.start }, 'a string holds an invalid escape')
  }
}
