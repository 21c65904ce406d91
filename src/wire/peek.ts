/**
 * The facts that routing needs from a request body, found in one pass over its bytes. Nothing is parsed into objects and
 * long strings (pictures, prompts) are jumped over, so the cost does not grow with what a request carries.
 */
import type { Cursor, Span } from './json/cursor'
import {
  elements,
  finish,
  members,
  openBrace,
  openBracket,
  peekByte,
  quote,
  skip,
  string,
  textOf,
  value,
} from './json/cursor'
import { invalid } from './json/values'
import { checkModelName } from './model-name'

/** `stream_options` of a body: where its value stands and where `include_usage` does, if it is there. */
export interface StreamOptions {
  readonly value: Span
  readonly isObject: boolean
  readonly includeUsage?: { readonly value: Span; readonly on: boolean }
}

/** `options` of a body, an object or null; each member from its name to the end of its value. */
export interface Options extends Span {
  readonly members: readonly (Span & { readonly name: string })[]
}

/** Spans count bytes in `body`. */
export interface BodyFacts {
  /** The client's bytes, without a byte order mark. */
  readonly body: Uint8Array
  readonly model: string
  /** Insides of every top-level `model` string: more than one only when a client wrote the member twice. */
  readonly modelSpans: readonly Span[]
  readonly stream?: boolean
  readonly streamOptions?: StreamOptions
  readonly options?: Options
  /** `num_ctx` of `options`. */
  readonly contextTokens?: number
  /** The value of the top-level `keep_alive`. */
  readonly keepAlive?: Span
  readonly thinks: boolean
  /** Bytes of text as they stand in the JSON: messages, prompt, tool calls. */
  readonly textBytes: number
  readonly images: number
  readonly tools: number
  readonly toolBytes: number
  /** The value of the top-level `tools`, where some are offered. */
  readonly toolsSpan?: Span
  readonly maxTokens?: number
  /** Absent when the body has no such member. */
  readonly messages?: number
  readonly hasPrompt: boolean
  readonly promptBytes: number
  /** What the parts of messages call themselves: `text`, `image_url`, `tool_result`, … */
  readonly partTypes: ReadonlySet<string>
  /** Leading system text and first user turn, for telling conversations apart. */
  readonly opening: { readonly system?: Span; readonly user?: Span }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
export type Draft = Omit<Mutable<BodyFacts>, 'modelSpans' | 'opening' | 'model' | 'partTypes'> & {
  model?: string
  modelSpans: Span[]
  readonly partTypes: Set<string>
  opening: { system?: Span; user?: Span }
}

const firstOfNull = 0x6e

const length = (span: Span): number => span.end - span.start

const countElements = (cursor: Cursor): number => {
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

const messages = (cursor: Cursor, draft: Draft): void => {
  if (peekByte(cursor) !== openBracket) throw invalid('"messages" must be an array.', 'messages')
  let count = 0
  elements(cursor, () => {
    message(cursor, draft)
    count++
  })
  draft.messages = count
}

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

/** Passes the value of a member and notes what matters in it. */
export type MemberReader = (cursor: Cursor, draft: Draft) => void

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
