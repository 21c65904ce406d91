import type { Job } from '../domain/job'
import { tokensOf } from '../domain/tokens'
import { ema } from './ema'

/** A shorter prompt is mostly the template around it. */
const MIN_BYTES = 200
/** Beyond these no tokenizer goes: the engine counted something else, for instance only what it had not cached. */
const MIN_RATIO = 1
const MAX_RATIO = 12

/** Moving means of the bytes of prompts and of their tokens, for one model. */
export interface TokenRatio {
  readonly model: string
  readonly bytes: number
  readonly tokens: number
  readonly samples: number
}

/** The ratio with one more prompt in it; unchanged by one that says nothing. */
export const withPrompt = (
  before: TokenRatio | undefined,
  model: string,
  bytes: number,
  tokens: number,
): TokenRatio | undefined => {
  const ratio = bytes / tokens
  if (bytes < MIN_BYTES || !(ratio >= MIN_RATIO && ratio <= MAX_RATIO)) return before
  return {
    model,
    bytes: ema(before?.bytes, bytes),
    tokens: ema(before?.tokens, tokens),
    samples: (before?.samples ?? 0) + 1,
  }
}

export const bytesPerTokenOf = (ratio: TokenRatio | undefined): number | undefined =>
  ratio && ratio.bytes / ratio.tokens

/** The job with its prompt estimated by the model's measured ratio; a count that is no estimate stays. */
export const withTokenRatio = (job: Job, bytesPerToken: number | undefined): Job => {
  const { promptBytes, promptTokens } = job
  if (bytesPerToken === undefined || promptBytes === undefined || promptTokens.basis !== 'estimated') return job
  const pictures = promptTokens.value - tokensOf(promptBytes, 0)
  return { ...job, promptTokens: { ...promptTokens, value: tokensOf(promptBytes, 0, bytesPerToken) + pictures } }
}
