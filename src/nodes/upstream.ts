/** The HTTP/1.1 client for inference requests: see `http1.ts`. */
export interface UpstreamClient {
  /**
   * Sends one request, once: never re-sent by the client itself, whatever happens to the connection.
   * Resolves when the response head is complete; rejects with a `NodeFault`. Aborting the signal destroys the
   * connection at any point, also while the body is read; with a `sender`, only until the request is written.
   */
  send(request: UpstreamSend): Promise<UpstreamReply>
  /** Closes idle connections of one origin, or all. */
  close(origin?: string): void
  stats(): { readonly open: number; readonly idle: number }
}

export interface UpstreamSend {
  readonly url: string
  readonly method: 'POST' | 'GET' | 'DELETE' | 'HEAD'
  /** Lower-case names; `host`, `content-length`, `connection`, `accept-encoding: identity` are set by the client. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly connectTimeoutMs: number
  readonly signal: AbortSignal
  /** Absent: the client listens to the signal for as long as the answer comes. */
  readonly sender?: UpstreamSender
}

/** Who sends a request and listens to its signal anyway: one listener then does for both. */
export interface UpstreamSender {
  /** The client's request, which may be sent to several nodes one after the other. */
  readonly call?: { readonly request: string }
  /** Closing the answer does not end the work that the node goes on with by itself. */
  readonly isLeft?: boolean
  /**
   * Told right before the request is written. `isReused`: its connection has carried another before. From now on the
   * sender has to close the answer when the signal fires, even before its head is there.
   */
  sending(answer: Pick<UpstreamReply, 'close'>, isReused: boolean): void
}

export interface UpstreamReply {
  readonly status: number
  /** Lower-case names, values joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** Decoded content length where the node said it. */
  readonly contentLength?: number
  /**
   * The next piece of the body, undefined at its clean end; rejects with a `NodeFault` (`reset`, `protocol`) when it
   * breaks. Nothing is read from the socket beyond a small buffer (256 KB) until it is asked for.
   */
  read(): Promise<Uint8Array | undefined>
  /** What `read` would give if it did not have to wait; undefined when it would have to wait, or would reject. */
  ready?(): Uint8Array | 'end' | undefined
  /**
   * Destroys the connection when the body was not read to its end, else returns it to the pool. Idempotent. `isOverdue`: a
   * byte of an answer should have come by now. On a kept connection that casts doubt on the idle ones beside it.
   */
  close(isOverdue?: boolean): void
}
