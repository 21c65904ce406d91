import type { Socket } from 'bun'
import { Answer, type Line } from './http1-answer'
import { pack, packet, pieces, type RequestHead, type Target } from './http1-request'
import type { UpstreamReply, UpstreamSend } from './upstream'

/** What a connection tells its pool. */
export interface ConnectionOwner {
  /** An exchange ended well; the connection can carry another for so long (ms). */
  onIdle(connection: Connection, reusableMs: number): void
  /** A reused connection closed, or was silent for too long, without an answer: the other idle ones of that origin may be as dead. */
  onUnanswered(target: Target): void
  /** `byNode`: it was the node that hung up. */
  onClosed(connection: Connection, byNode: boolean): void
}

/** One socket to a node, one request at a time. */
export class Connection implements Line {
  readonly target: Target
  /** ms since the epoch until which it may be reused; 0 while it carries a request. */
  reusableUntil = 0
  /** ms since the epoch at which its last answer ended; 0 before the first. */
  releasedAt = 0
  closed = false

  readonly #socket: Socket<unknown>
  readonly #owner: ConnectionOwner
  readonly #now: () => number
  #answer: Answer | undefined
  #requests = 0
  /** What the socket has not taken yet of a request that was too much for it, and how much of its first piece it has. */
  readonly #unsent: Uint8Array[] = []
  #offset = 0

  constructor(target: Target, socket: Socket<unknown>, owner: ConnectionOwner, now: () => number) {
    this.target = target
    this.#socket = socket
    this.#owner = owner
    this.#now = now
    // A token is a small packet: it must not wait for the acknowledgement of the one before.
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 30_000)
  }

  /** Writes the request; resolves with the head of its answer, rejects with a `NodeFault`. */
  exchange(head: RequestHead, { method, body, signal, sender }: UpstreamSend): Promise<UpstreamReply> {
    const isReused = this.#requests > 0
    this.reusableUntil = 0
    this.#requests += 1
    const answer = new Answer(this, this.#now, method !== 'HEAD', sender ? undefined : signal)
    this.#answer = answer
    sender?.sending(answer, isReused)
    if (!this.closed) this.#send(head, body)
    return answer.begun
  }

  #send(head: RequestHead, body: Uint8Array): void {
    const length = pack(head, body)
    if (length === 0) {
      this.#unsent.push(...pieces(head, body))
      this.onDrain()
      return
    }
    const written = Math.max(0, this.#socket.write(packet, 0, length))
    // Closed or full: the rest is copied, for the packet is the next request's.
    if (written < length) this.#unsent.push(Buffer.from(packet.subarray(written, length)))
  }

  onData(bytes: Buffer): void {
    if (this.#answer) this.#answer.receive(bytes)
    // Nothing was asked: whatever this is, it is not the answer to the next request.
    else this.#terminate()
  }

  onDrain(): void {
    while (this.#unsent.length > 0) {
      const piece = this.#unsent[0] as Uint8Array
      const written = this.#socket.write(piece, this.#offset, piece.length - this.#offset)
      // Closed: `onClose` follows and fails the answer, unless the answer is here already.
      if (written < 0) return
      this.#offset += written
      if (this.#offset < piece.length) return
      this.#unsent.shift()
      this.#offset = 0
    }
  }

  onEnd(): void {
    this.onClose(undefined)
    this.#socket.end()
  }

  /** The node hung up. After an `end` of our own this is only the echo. */
  onClose(error: Error | undefined): void {
    this.#close(error, true)
  }

  #close(error: Error | undefined, byNode: boolean): void {
    if (!this.closed) {
      this.closed = true
      this.#owner.onClosed(this, byNode)
    }
    const answer = this.#answer
    this.#answer = undefined
    answer?.disconnected(error, this.#requests > 1)
  }

  pause(): void {
    if (!this.closed) this.#socket.pause()
  }

  resume(): void {
    if (!this.closed) this.#socket.resume()
  }

  release(reusableMs: number): void {
    this.#answer = undefined
    if (this.closed) return
    // An answer that overtook its request leaves the rest of the request in the way of the next.
    if (reusableMs <= 0 || this.#unsent.length > 0) this.end()
    else this.#owner.onIdle(this, reusableMs)
  }

  destroy(isSuspect: boolean): void {
    this.#answer = undefined
    if (isSuspect && this.#requests > 1) this.#owner.onUnanswered(this.target)
    this.#terminate()
  }

  /** Closes politely: for a connection that owes nothing. */
  end(): void {
    this.#close(undefined, false)
    this.#socket.end()
  }

  /** With a reset: an engine that is computing learns it at its next look at the socket, not when a buffer fills. */
  #terminate(): void {
    this.#close(undefined, false)
    this.#socket.terminate()
  }
}
