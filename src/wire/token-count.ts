/** Counting the tokens of a prompt without running it: what is asked, and of whom. */
import type { NodeDescription } from '../domain/node'
import type { Json } from './json/values'

/** A prompt in each form in which an engine may be asked to count it. `model` is the node's own name for the model. */
export interface CountablePrompt {
  /** A body of Anthropic's `/v1/messages/count_tokens`; absent where engines leave out a part of it. */
  readonly anthropic?: (model: string) => Json
  /** A body of OpenAI's `/v1/chat/completions`. Throws `invalid_request`, and `not_supported` for what no engine reads. */
  readonly chat: (model: string) => Json
}

/** A node that has the model in memory, and its own name for it. */
export interface Holder {
  readonly node: NodeDescription
  readonly model: string
}

export interface Counted {
  readonly node: string
  readonly tokens: number
}

/**
 * Has one of the nodes count the prompt. Takes no slot, loads nothing and never rejects: undefined where nobody could tell
 * in time.
 */
export type CountOnNode = (
  holders: readonly Holder[],
  prompt: CountablePrompt,
  signal: AbortSignal,
) => Promise<Counted | undefined>
