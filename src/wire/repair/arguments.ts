/** Arguments of a call that are no JSON object, as small models write them: what they must have meant, or nothing. */
import { jsonrepair } from 'jsonrepair'
import type { Json } from '../json/values'
import { parseReply } from '../json/values'
import { accepts } from './schema'

/** Characters. The repair of some texts takes the square of their length: a tenth of a second for one of this size. */
const maxLength = 65_536
/** The repair of deeply nested texts takes the square of their depth. */
const maxDepth = 200

/** Escapes that JSON has, and the backslash of one that it does not have: `\d` of an expression, `\P` of a path. */
const escapes = /\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})|\\/g

/** Every backslash that escapes nothing stands for itself; a repair would drop it, and with it the meaning. */
const withBackslashes = (text: string): string => text.replace(escapes, (found) => (found === '\\' ? '\\\\' : found))

const isShallow = (text: string): boolean => {
  let depth = 0
  for (const character of text) {
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    if (depth > maxDepth) return false
  }
  return true
}

const rebuilt = (text: string): string | undefined => {
  try {
    return jsonrepair(text).trim()
  } catch {
    return undefined
  }
}

/** Some models write the object's JSON as a string. */
const unwrapped = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : text
  } catch {
    return text
  }
}

/** Ways to read the text, from the one that changes least. */
function* readings(text: string): Generator<string> {
  if (text.trim() === '') {
    yield '{}'
    return
  }
  const inner = unwrapped(text)
  if (inner !== text) yield inner
  const escaped = withBackslashes(inner)
  yield escaped
  const guess = isShallow(escaped) ? rebuilt(escaped) : undefined
  if (guess !== undefined) yield guess
}

/**
 * JSON text of an object that `schema` accepts. Undefined where nothing is to be repaired (the text is such an object
 * already, whatever the schema says of it) and where the text cannot be repaired.
 */
export const repairArguments = (text: string, schema: unknown): string | undefined => {
  if (text.length > maxLength || parseReply(text) !== undefined) return undefined
  for (const reading of readings(text)) {
    const value: Json | undefined = parseReply(reading)
    if (value !== undefined) return accepts(schema, value) ? reading : undefined
  }
  return undefined
}
