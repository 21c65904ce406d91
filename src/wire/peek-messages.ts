/** Text, pictures and parts of the messages of a body: measured and counted, never copied. */
import type { Draft } from './body-facts'
import type { Cursor, Span } from './json/cursor'
import { elements, members, openBrace, openBracket, peekByte, quote, skip, string, textOf } from './json/cursor'
import { invalid } from './json/values'

/** In bytes. */
export const length = (span: Span): number => span.end - span.start

export const countElements = (cursor: Cursor): number => {
  if (peekByte(cursor) !== openBracket) {
    skip(cursor)
    return 0
  }
  let count = 0
  elements(cursor, () => {
    skip(cursor)
    count++
  })
  return count
}

/** Results of tools hold parts of their own, and those of documents too; deeper than this nobody nests them. */
const maxPartDepth = 8

/** Members of a part that become text of the prompt, beside `text`. */
const spoken: readonly string[] = ['input', 'thinking']

/** A part of a message: text is measured, pictures are counted. */
export const part = (cursor: Cursor, draft: Draft, depth = 0): void => {
  if (peekByte(cursor) !== openBrace || depth > maxPartDepth) {
    skip(cursor)
    return
  }
  let type = ''
  let sourceBytes = 0
  members(cursor, (name) => {
    if (name === 'content') {
      content(cursor, draft, depth + 1)
      return
    }
    const isString = peekByte(cursor) === quote
    const span = skip(cursor)
    if (name === 'text' && isString) draft.textBytes += length(span) - 2
    else if (name === 'image_url' && (isString || cursor.bytes[span.start] === openBrace)) draft.images++
    else if (name === 'type' && isString) type = textOf(cursor, { start: span.start + 1, end: span.end - 1 })
    else if (name === 'source') sourceBytes = length(span)
    else if (spoken.includes(name)) draft.textBytes += length(span)
  })
  draft.partTypes.add(type)
  if (sourceBytes === 0) return
  if (type === 'image') draft.images++
  else draft.textBytes += sourceBytes
}

export const content = (cursor: Cursor, draft: Draft, depth = 0): Span => {
  const byte = peekByte(cursor)
  if (byte === quote) {
    const span = string(cursor)
    draft.textBytes += length(span)
    return span
  }
  if (byte !== openBracket) return skip(cursor)
  const start = cursor.at
  elements(cursor, () => part(cursor, draft, depth))
  return { start, end: cursor.at }
}

const isSystem = (role: string): boolean => role === 'system' || role === 'developer'

const message = (cursor: Cursor, draft: Draft): void => {
  if (peekByte(cursor) !== openBrace) throw invalid('Every entry of "messages" must be an object.', 'messages')
  let role = ''
  let said: Span | undefined
  members(cursor, (name) => {
    if (name === 'role' && peekByte(cursor) === quote) role = textOf(cursor, string(cursor))
    else if (name === 'content') said = content(cursor, draft)
    else if (name === 'images') draft.images += countElements(cursor)
    else if (name === 'tool_calls') draft.textBytes += length(skip(cursor))
    else skip(cursor)
  })
  if (said === undefined || draft.opening.user !== undefined) return
  if (role === 'user') draft.opening.user = said
  else if (isSystem(role)) draft.opening.system ??= said
}

export const messages = (cursor: Cursor, draft: Draft): void => {
  if (peekByte(cursor) !== openBracket) throw invalid('"messages" must be an array.', 'messages')
  let count = 0
  elements(cursor, () => {
    message(cursor, draft)
    count++
  })
  draft.messages = count
}
