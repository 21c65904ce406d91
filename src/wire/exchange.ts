import type { RouterError } from '../domain/errors'
import type { Capability, Job } from '../domain/job'
import type { NodeDescription } from '../domain/node'

/** Dialects that a node may speak natively. */
export type NodeDialect = 'openai' | 'ollama' | 'anthropic' | 'whisper' | 'sdapi' | 'sdcpp'

/** What goes to the node. Header names are lower case; credentials are added by the gateway, never here. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE' | 'HEAD'
  /** From the server root, e.g. `/v1/chat/completions`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly dialect: NodeDialect
  /** The node was asked to stream. */
  readonly stream: boolean
  /** The engine is known to leave the role out of some streams of chat. */
  readonly omitsRole?: boolean
}

export interface Usage {
  readonly tokensIn?: number
  readonly tokensOut?: number
  readonly cachedIn?: number
  /** The answer ran out of tokens before anything but thinking was said. */
  readonly thinkingExhausted?: true
  /** Calls of tools whose arguments were no JSON until the router repaired them. */
  readonly toolCallsRepaired?: number
}

/**
 * Turns a node's 2xx body into the client's body. Fed chunk by chunk in order; returns what goes out now (the same
 * array, untouched, on the pass-through path). Never throws for odd content: it reports `problem()`.
 */
export interface ReplyTransform {
  /** Content type of the client's body. */
  readonly contentType: string
  push(chunk: Uint8Array): Uint8Array | undefined
  /** The node's body has ended cleanly: the rest to send. */
  end(): Uint8Array | undefined
  /** The protocol's end marker was seen (`[DONE]` or finish reason; `done:true`; whole JSON for non-streams). */
  complete(): boolean
  /** An error that the node put into a 2xx body, if one was seen. */
  problem(): { readonly message: string; readonly status?: number } | undefined
  /** True once something was seen that counts as the first byte of the answer (not comments, not pings). */
  begun(): boolean
  usage(): Usage
}

/** What is measured around a reply, for dialects that report times (Ollama's durations). */
export interface Timing {
  readonly sentAt: number
  firstByteAt: number
  loadMs: number
  now(): number
}

/** A whole answer that no node had to give. */
export interface OwnAnswer {
  readonly contentType: string
  readonly body: Uint8Array
}

/** One client call: its bytes and its dialect. Lives in the HTTP layer and the gateway, never in an actor. */
export interface Exchange {
  readonly job: Job
  /** Of a request that only takes a model out of memory: the answer when no node has it there. */
  readonly unloaded?: OwnAnswer
  /** Of a request that only brings a model into memory: the answer, once it is there, for a node without such a request. */
  loaded?(native: readonly NodeDialect[]): OwnAnswer | undefined
  /** The node dialects it can be sent in, best first, for a node that speaks `native`. */
  request(target: {
    readonly node: NodeDescription
    readonly model: string
    readonly native: readonly NodeDialect[]
    readonly contextTokens?: number
    /** What the model can do there, where the node tells. */
    readonly capabilities?: readonly Capability[]
  }): UpstreamRequest
  /** Fresh state for the answer to that request; `contentType` as the node tells it. */
  reply(request: UpstreamRequest, model: string, timing: Timing, contentType?: string): ReplyTransform
  /** The node's own 4xx, in the client's dialect: whole body given. */
  rejection(
    request: UpstreamRequest,
    status: number,
    body: Uint8Array,
  ): { readonly status: number; readonly contentType: string; readonly body: Uint8Array }
  /** An error that ends a stream in-band; framed so that it stands alone even after a half line. */
  inBandError(error: RouterError): Uint8Array
  /** Sound: it goes out as it comes although it is no stream of events, and breaks off without a word. */
  readonly flows?: true
  /**
   * What a client that waits for its stream may be sent without it counting as an answer; absent where there is nothing.
   * `note` says for people what is being waited for, one line, where the protocol has a place for it.
   */
  readonly keepAlive?: (note?: string) => Uint8Array
}

/** The calls in progress, by request id. */
export interface Exchanges {
  get(request: string): Exchange | undefined
  set(request: string, exchange: Exchange): unknown
  delete(request: string): boolean
}
