/** What routing needs from a body of `POST /v1/responses`, found without parsing it into objects. */
import { RouterError } from '../domain/errors'
import type { Cursor, Span } from './json/cursor'
import { elements, members, openBrace, openBracket, peekByte, quote, skip, string, textOf, value } from './json/cursor'
import { invalid } from './json/values'
import type { BodyFacts, Draft, MemberReader } from './body-facts'
import { peek } from './peek'
import { content } from './peek-messages'
import { nothingKept } from './responses-input'

export interface ResponsesFacts {
  readonly body: BodyFacts
  /** `prompt_cache_key`, which clients keep the same for all turns of a conversation. */
  readonly cacheKey?: string
}

/** Members of items that become text of the prompt, beside `content` and `output`. */
const spoken: ReadonlySet<string> = new Set(['arguments', 'input', 'summary', 'action', 'operation'])

const length = (span: Span): number => span.end - span.start

const item = (cursor: Cursor, draft: Draft): void => {
  if (peekByte(cursor) !== openBrace) throw invalid('Every entry of "input" must be an object.', 'input')
  let role = ''
  let said: Span | undefined
  members(cursor, (name) => {
    if (name === 'role' && peekByte(cursor) === quote) role = textOf(cursor, string(cursor))
    else if (name === 'content') said = content(cursor, draft)
    else if (name === 'output') content(cursor, draft)
    else if (spoken.has(name)) draft.textBytes += length(skip(cursor))
    else skip(cursor)
  })
  if (said === undefined || draft.opening.user !== undefined) return
  if (role === 'user') draft.opening.user = said
  else if (role === 'system' || role === 'developer') draft.opening.system ??= said
}

const input: MemberReader = (cursor, draft) => {
  draft.messages = 0
  const byte = peekByte(cursor)
  if (byte === quote) {
    draft.opening.user = content(cursor, draft)
    draft.messages = 1
  } else if (byte === openBracket) {
    elements(cursor, () => {
      item(cursor, draft)
      draft.messages = (draft.messages ?? 0) + 1
    })
  } else throw invalid('"input" must be a string or a list of items.', 'input')
}

const instructions: MemberReader = (cursor, draft) => {
  if (peekByte(cursor) === quote) draft.opening.system = content(cursor, draft)
  else skip(cursor)
}

/** What a chat engine can be offered; all others are run by a hosted service. */
const offered: readonly string[] = ['function', 'custom', 'namespace']

const tools: MemberReader = (cursor, draft) => {
  draft.tools = 0
  draft.toolBytes = 0
  if (peekByte(cursor) !== openBracket) {
    skip(cursor)
    return
  }
  elements(cursor, () => {
    let type = ''
    const start = cursor.at
    if (peekByte(cursor) !== openBrace) skip(cursor)
    else
      members(cursor, (name) => {
        if (name === 'type' && peekByte(cursor) === quote) type = textOf(cursor, string(cursor))
        else skip(cursor)
      })
    if (!offered.includes(type)) return
    draft.tools++
    draft.toolBytes += cursor.at - start
  })
}

const notKept =
  (what: string, name: string): MemberReader =>
  (cursor) => {
    const id = value(cursor)
    if (id !== null && id !== '') throw nothingKept(what, name)
  }

/** Throws `invalid_request`; `response_not_found` and `not_supported` for what needs a server that keeps responses. */
export const peekResponses = (bytes: Uint8Array): ResponsesFacts => {
  let cacheKey: string | undefined
  const body = peek(bytes, {
    input,
    instructions,
    tools,
    previous_response_id: notKept('The previous response', 'previous_response_id'),
    conversation: notKept('The conversation', 'conversation'),
    prompt: notKept('The stored prompt', 'prompt'),
    background: (cursor) => {
      if (value(cursor) !== true) return
      throw new RouterError('not_supported', 'A response cannot run in the background: this router keeps none.', {
        param: 'background',
      })
    },
    prompt_cache_key: (cursor) => {
      const key = value(cursor)
      cacheKey = typeof key === 'string' && key !== '' ? key : undefined
    },
  })
  if (body.messages === undefined) throw invalid('"input" is missing.', 'input')
  if (body.messages === 0) throw invalid('"input" is empty.', 'input')
  return { body, ...(cacheKey !== undefined && { cacheKey }) }
}
