/** OpenAI's legacy `POST /v1/completions`: what routing needs of a body, and the canonical request with its raw prompt. */
import { RouterError } from '../domain/errors'
import type { ChatRequest } from './canonical'
import type { Cursor } from './json/cursor'
import { elements, openBracket, peekByte, quote, skip, string } from './json/cursor'
import type { Json } from './json/values'
import { booleanAt, invalid, numberAt, stringAt } from './json/values'
import type { BodyFacts, Draft } from './body-facts'
import { peek } from './peek'
import { readSampling, readStop } from './sampling'

/** A token is given by its number; it counts as much as the text that it stands for usually has. */
const bytesPerTokenNumber = 4

/** Texts count by their bytes, token numbers by what they stand for; lists may hold lists. */
const prompt = (cursor: Cursor, draft: Draft, isFirst = true): void => {
  draft.hasPrompt = true
  const byte = peekByte(cursor)
  if (byte === openBracket) {
    elements(cursor, () => prompt(cursor, draft, false))
    return
  }
  if (byte !== quote) {
    skip(cursor)
    draft.textBytes += bytesPerTokenNumber
    return
  }
  const span = string(cursor)
  draft.textBytes += span.end - span.start
  if (isFirst) draft.opening.user = span
}

/** Throws `invalid_request`. */
export const peekCompletion = (body: Uint8Array): BodyFacts => {
  const facts = peek(body, { prompt })
  if (!facts.hasPrompt) throw invalid('"prompt" is missing.', 'prompt')
  return facts
}

export interface CompletionRequest {
  readonly chat: ChatRequest
  readonly prompt: string
  readonly suffix?: string
  /** The answer begins with the prompt. */
  readonly echo: boolean
}

const readPrompt = (given: unknown): string => {
  const only = Array.isArray(given) && given.length === 1 ? given[0] : given
  if (typeof only === 'string') return only
  if (Array.isArray(only) && only.every((entry) => typeof entry === 'string'))
    throw invalid('This model runs on an engine that takes one prompt per request.', 'prompt')
  throw new RouterError('not_supported', 'This model runs on an engine that takes prompts only as text.', {
    param: 'prompt',
  })
}

/** For nodes without such an endpoint. Throws `invalid_request` and `not_supported`. */
export const readCompletion = (body: Json): CompletionRequest => {
  const suffix = stringAt(body, 'suffix')
  const maxTokens = numberAt(body, 'max_tokens')
  const topLogprobs = numberAt(body, 'logprobs')
  const choices = numberAt(body, 'n')
  return {
    prompt: readPrompt(body.prompt),
    echo: booleanAt(body, 'echo') === true,
    ...(suffix !== undefined && suffix !== '' && { suffix }),
    chat: {
      messages: [],
      tools: [],
      sampling: readSampling(body),
      stop: readStop(body.stop, 'stop'),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(topLogprobs !== undefined && { logprobs: true, topLogprobs }),
      ...(choices !== undefined && { choices }),
    },
  }
}
