/** The middle of every translation: what a client asks and what a node answers, free of any dialect's spelling. */
import type { Json } from './json/values'

export type Picture =
  | { readonly kind: 'inline'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'remote'; readonly url: string }

export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'picture'; readonly picture: Picture }
  | { readonly kind: 'audio'; readonly base64: string; readonly format: string }

export interface ToolCall {
  readonly id?: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
}

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly Part[]
  readonly reasoning?: string
  readonly calls: readonly ToolCall[]
  /** On role `tool`: the call that it answers. */
  readonly callId?: string
  readonly toolName?: string
}

export type ToolChoice =
  | { readonly kind: 'auto' }
  | { readonly kind: 'none' }
  | { readonly kind: 'required' }
  | { readonly kind: 'only'; readonly names: readonly string[]; readonly required: boolean }

export type Format =
  | { readonly kind: 'json' }
  | { readonly kind: 'schema'; readonly schema: unknown; readonly name?: string; readonly strict?: boolean }

export type Effort = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

export interface ChatRequest {
  readonly messages: readonly Message[]
  /** OpenAI's function form, which Ollama shares. */
  readonly tools: readonly Json[]
  readonly toolChoice?: ToolChoice
  readonly parallelCalls?: boolean
  /** Numbers whose name is the same in every dialect: `temperature`, `top_p`, … */
  readonly sampling: Readonly<Record<string, number>>
  readonly maxTokens?: number
  readonly stop: readonly string[]
  readonly format?: Format
  readonly reasoning?: { readonly on: boolean; readonly effort?: Effort; readonly budgetTokens?: number }
  readonly logprobs?: boolean
  readonly topLogprobs?: number
  /** Answers asked for at once. */
  readonly choices?: number
  readonly keepAlive?: string | number
  readonly contextTokens?: number
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Engine times in ms, where the node tells them. */
export interface EngineTimes {
  readonly promptMs?: number
  readonly generateMs?: number
}

export type ReplyEvent =
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly unknown[] }
  | { readonly type: 'reasoning'; readonly text: string }
  /** A call begins; `arguments` is its first fragment of JSON text, or all of it. Indexes count from 0. */
  | {
      readonly type: 'call'
      readonly index: number
      readonly id: string
      readonly name: string
      readonly arguments: string
    }
  | { readonly type: 'arguments'; readonly index: number; readonly fragment: string }
  | {
      readonly type: 'usage'
      readonly tokensIn?: number
      readonly tokensOut?: number
      readonly cachedIn?: number
      readonly reasoningOut?: number
      readonly times?: EngineTimes
    }
  /** `stoppedBy` is the client's stop sequence that was met, where the node tells. */
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly stoppedBy?: string }
  | { readonly type: 'error'; readonly message: string; readonly status?: number }
  /** Nothing follows. */
  | { readonly type: 'done' }
