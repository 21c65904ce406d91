import type { RouterError } from '../domain/errors'
import type { Failure } from '../domain/facts'
import type { NodeDescription, NodeReport } from '../domain/node'

/** The answer as it begins: status and headers for the client, and the body in the client's dialect. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ReadableStream<Uint8Array> | Uint8Array
  /** Told when the body was broken off because the client does not read it: nothing that is written reaches it. */
  onAbandoned?(tell: () => void): void
  /** Asks to be told, once, when nothing more of the body comes, however it ended; at once if that is so already. */
  onOver?(tell: () => void): void
}

export interface ReplySummary {
  /** `incomplete`: it ended without the protocol's end marker, or broke after the first byte. */
  readonly end: 'completed' | 'incomplete'
  readonly status: number
  readonly bytes: number
  readonly tokensIn?: number
  readonly tokensOut?: number
  /** The answer ran out of tokens before anything but thinking was said. */
  readonly thinkingExhausted?: true
  /** Calls of tools whose broken arguments were repaired on the way. */
  readonly toolCallsRepaired?: number
  /** From sending to the last byte. */
  readonly durationMs: number
  readonly failure?: Failure
}

/**
 * What the sender of a request hears. Exactly one of `finished`, `failed`, `refused`, `left` comes last; `started` comes at most
 * once and before `finished`. After `started` the client has the reply, so nothing may be tried again.
 */
export interface ReplyListener {
  started(reply: Reply, firstByteMs: number): void
  finished(summary: ReplySummary): void
  /** Before the first byte: nothing has reached the client. `rejected` carries the node's own 4xx answer. */
  failed(failure: Failure, rejected?: Reply): void
  /** The request cannot be put in the node's terms: the client's error, and nothing was sent. */
  refused(error: RouterError): void
  /** The client cancelled the body that it was reading. */
  left(bytes: number): void
}

export interface Call {
  readonly request: string
  readonly attempt: number
  readonly node: NodeDescription
  /** As the fleet calls it; `catalog/naming` puts the node's own name there before it leaves the core. */
  readonly model: string
  /** The window the model is (to be) loaded with on this node. */
  readonly contextTokens?: number
}

/** The clock's view of a running relay; read by timers, written by the relay save where it says so. */
export interface Flow {
  /** ms since the epoch of the last byte from the node. */
  lastByteAt: number
  bytes: number
  /** Since when the client has not taken what is there, or 0. */
  clientStalledSince: number
  /** It went out on a connection that had been idle, and no answer has come back yet. */
  isUnproven?: boolean
  /** Set by who gives the call up because no answer came in time, and not for a reason of its own as a client has that leaves. */
  isOverdue?: boolean
}

export interface LoadOptions {
  readonly contextTokens?: number
  /** Idle models to unload first. */
  readonly evicts: readonly string[]
}

/** Everything the core needs from a node. One implementation over the adapters, one in simulation. */
export interface NodeGateway {
  /** One poll. Rejects with a `NodeFault`; never has side effects on the node. */
  report(node: NodeDescription, signal: AbortSignal): Promise<NodeReport>
  /** Resolves once the model answers for real. */
  load(node: NodeDescription, model: string, options: LoadOptions, signal: AbortSignal): Promise<void>
  unload(node: NodeDescription, model: string, signal: AbortSignal): Promise<void>
  /** Sends the request's exchange to the node. Aborting the signal closes the upstream connection. */
  forward(call: Call, listener: ReplyListener, signal: AbortSignal): Flow
  /**
   * After the first byte: ends the client's body with the dialect's in-band error. What the node goes on with after it has
   * answered (a video) is given up as well, unless it `isLeft` to be asked for by the next process.
   */
  cut(request: string, failure: Failure, isLeft?: boolean): void
}

/** A call to a node that failed, with its class for labels and records. */
export class NodeFault extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(failure.message)
    this.name = 'NodeFault'
    this.failure = failure
  }
}
