/** What routing needs from a body of `POST /v1/messages`, found without parsing it into objects. */
import type { Edit } from './bytes'
import { decode, encode, find } from './bytes'
import type { Cursor, Span } from './json/cursor'
import { elements, members, openBrace, openBracket, peekByte, quote, skip, space, string, textOf } from './json/cursor'
import { isObject, parseReply } from './json/values'
import type { BodyFacts, Draft } from './body-facts'
import { peek } from './peek'
import { content, part } from './peek-messages'

export interface AnthropicFacts {
  readonly body: BodyFacts
  /** Takes the billing header out of the body; empty where there is none. */
  readonly withoutBilling: readonly Edit[]
  /** `metadata.user_id`. */
  readonly userId?: string
  /** All of it is carried out by an engine that knows the basics of this dialect, and nothing silently left out. */
  readonly isPlain: boolean
}

/**
 * Claude Code begins its system text with a block of this kind, whose value changes with every request: a prompt that
 * begins with it never matches what an engine has cached.
 */
export const billingHeader = 'x-anthropic-billing-header:'

const billingNeedle = encode(`"${billingHeader}`)

const isBilling = (block: Uint8Array): boolean => {
  if (find(block, billingNeedle) < 0) return false
  const text = parseReply(decode(block))?.text
  return typeof text === 'string' && text.startsWith(billingHeader)
}

/** Blocks that engines with this dialect are known to carry out. */
const plainParts: ReadonlySet<string> = new Set(['', 'text', 'image', 'tool_use', 'tool_result', 'thinking'])

/** The `type` of an object, `''` where it has none; passes the value. */
const typeOf = (cursor: Cursor): string => {
  if (peekByte(cursor) !== openBrace) {
    skip(cursor)
    return ''
  }
  let type = ''
  members(cursor, (name) => {
    if (name === 'type' && peekByte(cursor) === quote) type = textOf(cursor, string(cursor))
    else skip(cursor)
  })
  return type
}

/** Tools that a hosted model brings along have a type and no schema; no local engine can run them. */
const isHosted = (type: string): boolean => type !== '' && type !== 'custom'

/** Throws `invalid_request`. */
export const peekAnthropic = (bytes: Uint8Array): AnthropicFacts => {
  let withoutBilling: Edit[] = []
  let userId: string | undefined
  const odd = new Set<string>()

  const system = (cursor: Cursor, draft: Draft): void => {
    if (peekByte(cursor) !== openBracket) {
      draft.opening.system = content(cursor, draft)
      return
    }
    const start = cursor.at
    const kept: Span[] = []
    let count = 0
    elements(cursor, () => {
      space(cursor)
      const block = { start: cursor.at, end: skip({ ...cursor }).end }
      count++
      if (isBilling(cursor.bytes.subarray(block.start, block.end))) skip(cursor)
      else {
        part(cursor, draft)
        kept.push(block)
      }
    })
    const [first] = kept
    draft.opening.system = { start: first?.start ?? cursor.at, end: cursor.at }
    const text = (): string => kept.map((block) => decode(cursor.bytes.subarray(block.start, block.end))).join(',')
    withoutBilling = kept.length === count ? [] : [{ start, end: cursor.at, text: `[${text()}]` }]
  }

  const tools = (cursor: Cursor, draft: Draft): void => {
    draft.tools = 0
    draft.toolBytes = 0
    delete draft.toolsSpan
    if (peekByte(cursor) !== openBracket) {
      skip(cursor)
      return
    }
    const from = cursor.at
    elements(cursor, () => {
      space(cursor)
      const start = cursor.at
      if (isHosted(typeOf(cursor))) {
        odd.add('tools')
        return
      }
      draft.tools++
      draft.toolBytes += cursor.at - start
    })
    if (draft.tools > 0) draft.toolsSpan = { start: from, end: cursor.at }
  }

  const toolChoice = (cursor: Cursor): void => {
    if (!['', 'auto', 'none'].includes(typeOf(cursor))) odd.add('tool_choice')
  }

  const thinking = (cursor: Cursor): void => {
    if (typeOf(cursor) === 'disabled') odd.add('thinking')
  }

  const outputConfig = (cursor: Cursor): void => {
    skip(cursor)
    odd.add('output_config')
  }

  const metadata = (cursor: Cursor): void => {
    const span = skip(cursor)
    const given = parseReply(decode(cursor.bytes.subarray(span.start, span.end)))
    const id = isObject(given) ? given.user_id : undefined
    userId = typeof id === 'string' && id !== '' ? id : undefined
  }

  const body = peek(bytes, {
    system,
    tools,
    thinking,
    metadata,
    tool_choice: toolChoice,
    output_config: outputConfig,
  })
  const isPlain = odd.size === 0 && [...body.partTypes].every((type) => plainParts.has(type))
  return { body, withoutBilling, isPlain, ...(userId !== undefined && { userId }) }
}
