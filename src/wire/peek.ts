/**
 * The facts that routing needs from a request body, found in one pass over its bytes. Nothing is parsed into objects and
 * long strings (pictures, prompts) are jumped over, so the cost does not grow with what a request carries.
 */
import type { BodyFacts, Draft, MemberReader, Options, StreamOptions } from './body-facts'
import type { Cursor } from './json/cursor'
import { finish, members, openBrace, openBracket, peekByte, quote, skip, string, textOf, value } from './json/cursor'
import { invalid } from './json/values'
import { checkModelName } from './model-name'
import { countElements, length, messages } from './peek-messages'

const firstOfNull = 0x6e

const options = (cursor: Cursor, draft: Draft): void => {
  delete draft.contextTokens
  delete draft.options
  if (peekByte(cursor) !== openBrace) {
    const span = skip(cursor)
    if (cursor.bytes[span.start] === firstOfNull) draft.options = { ...span, members: [] }
    return
  }
  const start = cursor.at
  const found: Options['members'][number][] = []
  members(cursor, (name, keyStart) => {
    const span = skip(cursor)
    found.push({ name, start: keyStart, end: span.end })
    if (name !== 'num_ctx') return
    const tokens = value({ bytes: cursor.bytes, at: span.start })
    if (tokens === null) return
    if (typeof tokens !== 'number') throw invalid('"options.num_ctx" must be a number.', 'options.num_ctx')
    // Each window is another load of the model, so one that no engine can have must not reach a node.
    if (!Number.isSafeInteger(tokens) || tokens < 0)
      throw invalid('"options.num_ctx" must be a whole number of tokens.', 'options.num_ctx')
    draft.contextTokens = tokens
  })
  draft.options = { start, end: cursor.at, members: found }
}

const streamOptions = (cursor: Cursor): StreamOptions => {
  if (peekByte(cursor) !== openBrace) return { value: skip(cursor), isObject: false }
  const start = cursor.at
  let includeUsage: StreamOptions['includeUsage']
  members(cursor, (name) => {
    const on = peekByte(cursor) === 0x74
    const span = skip(cursor)
    if (name === 'include_usage') includeUsage = { value: span, on }
  })
  return { value: { start, end: cursor.at }, isObject: true, ...(includeUsage && { includeUsage }) }
}

const model = (cursor: Cursor, draft: Draft): void => {
  if (peekByte(cursor) !== quote) throw invalid('"model" must be a string.', 'model')
  const span = string(cursor)
  draft.model = textOf(cursor, span)
  draft.modelSpans.push(span)
}

const stream = (cursor: Cursor, draft: Draft): void => {
  const on = value(cursor)
  if (typeof on === 'boolean') draft.stream = on
  else if (on === null) delete draft.stream
  else throw invalid('"stream" must be true or false.', 'stream')
}

const maxTokens = (cursor: Cursor, draft: Draft): void => {
  const byte = peekByte(cursor)
  if (byte === quote || byte === openBrace || byte === openBracket) skip(cursor)
  else {
    const tokens = value(cursor)
    if (typeof tokens === 'number') draft.maxTokens = tokens
  }
}

const tools = (cursor: Cursor, draft: Draft): void => {
  const start = cursor.at
  draft.tools = countElements(cursor)
  draft.toolBytes = draft.tools === 0 ? 0 : cursor.at - start
  if (draft.tools > 0) draft.toolsSpan = { start, end: cursor.at }
  else delete draft.toolsSpan
}

/** A top-level text: `prompt` and `system` of `/api/generate`. */
const text = (cursor: Cursor, draft: Draft, name: 'prompt' | 'system'): void => {
  if (peekByte(cursor) !== quote) {
    skip(cursor)
    return
  }
  const span = string(cursor)
  draft.textBytes += length(span)
  if (name === 'system') {
    draft.opening.system ??= span
    return
  }
  draft.hasPrompt = true
  draft.promptBytes = length(span)
  draft.opening.user ??= span
}

/** What each member that matters does; all others are skipped. A member that is written twice counts as its last. */
const readers: Readonly<Record<string, MemberReader>> = {
  model,
  stream,
  messages,
  options,
  tools,
  stream_options: (cursor, draft) => {
    draft.streamOptions = streamOptions(cursor)
  },
  max_tokens: maxTokens,
  max_completion_tokens: maxTokens,
  max_output_tokens: maxTokens,
  think: (cursor, draft) => {
    draft.thinks = peekByte(cursor) === 0x74
    skip(cursor)
  },
  keep_alive: (cursor, draft) => {
    draft.keepAlive = skip(cursor)
  },
  images: (cursor, draft) => {
    draft.images += countElements(cursor)
  },
  prompt: (cursor, draft) => text(cursor, draft, 'prompt'),
  system: (cursor, draft) => text(cursor, draft, 'system'),
}

const withoutMark = (bytes: Uint8Array): Uint8Array =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

/**
 * Throws `invalid_request`: bad JSON with the position, a missing or wrong member with its name in `param`. `own` are the
 * readers of a dialect that spells some members in its own way.
 */
export const peek = (bytes: Uint8Array, own: Readonly<Record<string, MemberReader>> = {}): BodyFacts => {
  const body = withoutMark(bytes)
  const cursor: Cursor = { bytes: body, at: 0 }
  const draft: Draft = {
    body,
    modelSpans: [],
    thinks: false,
    textBytes: 0,
    images: 0,
    tools: 0,
    toolBytes: 0,
    hasPrompt: false,
    promptBytes: 0,
    partTypes: new Set(),
    opening: {},
  }
  if (peekByte(cursor) === undefined) throw invalid('The body is empty; a JSON object is expected.')
  if (peekByte(cursor) === openBracket) throw invalid('The body must be a JSON object.')
  members(cursor, (name) => {
    const read = Object.hasOwn(own, name) ? own[name] : Object.hasOwn(readers, name) ? readers[name] : undefined
    if (read) read(cursor, draft)
    else skip(cursor)
  })
  finish(cursor)
  if (draft.model === undefined) throw invalid('"model" is missing.', 'model')
  draft.model = checkModelName(draft.model)
  return draft as Draft & { model: string }
}
