/** What one pass over a body finds: see `peek.ts`. */
import type { Cursor, Span } from './json/cursor'

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
/** What one pass has found so far. */
export type Draft = Omit<Mutable<BodyFacts>, 'modelSpans' | 'opening' | 'model' | 'partTypes'> & {
  model?: string
  modelSpans: Span[]
  readonly partTypes: Set<string>
  opening: { system?: Span; user?: Span }
}

/** Passes the value of a member and notes what matters in it. */
export type MemberReader = (cursor: Cursor, draft: Draft) => void
