/** What is to be embedded: a text, several, or token numbers. Found without parsing the texts. */
import { RouterError } from '../domain/errors'
import { elements, openBracket, peekByte, quote, skip, string } from './json/cursor'
import { invalid } from './json/values'
import type { MemberReader } from './body-facts'

/** A token is given by its number; it counts as much as the text that it stands for usually has. */
const bytesPerTokenNumber = 4

export interface EmbeddingInput {
  /** Vectors that the answer must have. */
  count: number
  /** Bytes of text. */
  bytes: number
  /** Token numbers instead of texts. */
  hasTokens: boolean
}

/** Notes into `input` what stands there. A list of numbers is one input, a list of lists several. */
export const inputReader =
  (input: EmbeddingInput): MemberReader =>
  (cursor, draft) => {
    Object.assign(input, { count: 0, bytes: 0, hasTokens: false })
    const text = (): void => {
      const span = string(cursor)
      input.bytes += span.end - span.start
    }
    const numbers = (): void => {
      input.hasTokens = true
      skip(cursor)
      input.bytes += bytesPerTokenNumber
    }
    if (peekByte(cursor) === quote) {
      text()
      input.count = input.bytes > 0 ? 1 : 0
    } else if (peekByte(cursor) === openBracket) {
      let isOne = false
      elements(cursor, () => {
        const byte = peekByte(cursor)
        if (byte === quote) text()
        else if (byte === openBracket) elements(cursor, numbers)
        else {
          numbers()
          isOne = true
        }
        input.count += 1
      })
      if (isOne) input.count = 1
    } else skip(cursor)
    draft.textBytes += input.bytes
  }

/** The texts of a body's member, for a node that takes only texts. Throws `invalid_request` and `not_supported`. */
export const textsOf = (given: unknown, param: string): readonly string[] => {
  const list = Array.isArray(given) ? given : [given]
  if (list.every((entry) => typeof entry === 'string')) return list
  const isTokens = list.flat().every((entry) => typeof entry === 'number')
  if (!isTokens) throw invalid(`"${param}" must be a text or a list of texts.`, param)
  throw new RouterError('not_supported', 'This model runs on an engine that takes inputs only as text.', { param })
}
