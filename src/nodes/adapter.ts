import type { LoadOptions } from '../ports/node-gateway'
import type { NodeDescription, NodeKind, NodeReport } from '../domain/node'
import type { NodeDialect } from '../wire/exchange'
import type { CountablePrompt } from '../wire/token-count'
import type { NodeHttp } from './http'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from './upstream'

/** What a fingerprint found. */
export interface Identity {
  readonly kind: NodeKind
  readonly version?: string
  /** Server root as it should be used from now on (no trailing slash, no `/v1`, no `/api`). */
  readonly url: string
}

/** One kind of node. Stateless; everything it needs comes through `http`. One file and one line in `index.ts`. */
export interface NodeAdapter {
  readonly kind: NodeKind
  /** Dialects that its implementation speaks correctly, whatever its version; `native.ts` adds those of newer ones. */
  readonly native: readonly NodeDialect[]
  /** The engine goes on computing for a while after its client left (it notices only at the next write). */
  readonly lingersAfterCancel: boolean
  /** Undefined when the server at `url` is not of this kind. Only requests without side effects. */
  fingerprint(url: string, http: NodeHttp, signal: AbortSignal): Promise<Identity | undefined>
  report(node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<NodeReport>
  /** Resolves once the model is in memory. Absent when the kind cannot load. */
  load?(node: NodeDescription, model: string, options: LoadOptions, http: NodeHttp, signal: AbortSignal): Promise<void>
  unload?(node: NodeDescription, model: string, http: NodeHttp, signal: AbortSignal): Promise<void>
  /**
   * Tokens of the prompt as the model there would read it. Takes no slot and loads nothing: undefined where the model has
   * left the memory meanwhile, or the engine cannot tell. Absent when the kind cannot count.
   */
  countTokens?(
    node: NodeDescription,
    model: string,
    prompt: CountablePrompt,
    http: NodeHttp,
    signal: AbortSignal,
  ): Promise<number | undefined>
  /** Of an engine that takes more than one call for an answer; absent: the request is sent as it is. */
  send?(request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply>
}
