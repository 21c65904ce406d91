import type { Failure } from '../domain/facts'
import { NodeFault } from '../ports/node-gateway'
import { type BodyDecoder, createBodyDecoder, part } from './http1-body'
import {
  type Framing,
  FramingError,
  HEAD_LIMIT_BYTES,
  headEnd,
  looksLikeHead,
  parseHead,
  type ResponseHead,
} from './http1-head'
import type { UpstreamReply } from './upstream'

/** What an answer asks of the connection that it arrives on. */
export interface Line {
  pause(): void
  resume(): void
  /** The answer is complete; `reusableMs` is how long the node keeps the idle connection, 0 if not at all. */
  release(reusableMs: number): void
  /** Ends the connection at once. `isSuspect`: not one byte of an answer came, and that was not for want of patience. */
  destroy(isSuspect: boolean): void
}

/** Above this the socket is paused until the reader has taken half of it. */
export const BUFFER_LIMIT_BYTES = 256 * 1024

/** A node closes a connection when its own time is over: we must have stopped using it a little before. */
const KEEP_ALIVE_MARGIN_MS = 1_000

/** A connection that the node had closed already fails within a round trip; what fails later had reached an engine. */
const STALE_WITHIN_MS = 500
const EMPTY = Buffer.alloc(0)
const NO_BODY: Framing = { kind: 'none' }

interface Waiting {
  resolve(piece: Uint8Array | undefined): void
  reject(fault: NodeFault): void
}

/** One answer on one connection, from the first byte of its head to the last of its body. */
export class Answer implements UpstreamReply {
  status = 0
  headers: Readonly<Record<string, string>> = {}
  contentLength?: number
  /** Settles when the head is complete. */
  readonly begun: Promise<UpstreamReply>

  readonly #line: Line
  readonly #now: () => number
  readonly #sentAt: number
  /** An answer to HEAD has none, whatever length it tells. */
  readonly #wantsBody: boolean
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: (() => void) | undefined
  #resolveHead!: (reply: UpstreamReply) => void
  #rejectHead!: (fault: NodeFault) => void

  #head: Buffer = EMPTY
  #reusableMs = 0
  #decoder: BodyDecoder | undefined
  #arrived = false
  #received = 0
  #ended = false
  #fault: NodeFault | undefined
  readonly #queue: Uint8Array[] = []
  #queued = 0
  #paused = false
  #waiting: Waiting | undefined

  /** Without a signal it is for the sender to close the answer. */
  constructor(line: Line, now: () => number, wantsBody: boolean, signal: AbortSignal | undefined) {
    this.#line = line
    this.#now = now
    this.#sentAt = now()
    this.#wantsBody = wantsBody
    this.begun = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    if (!signal) return
    this.#signal = signal
    this.#onAbort = () => this.#cancel('the request was cancelled', false)
    signal.addEventListener('abort', this.#onAbort)
  }

  /** Bytes from the socket. They must be ours to keep and to change. */
  receive(bytes: Buffer): void {
    this.#arrived = true
    try {
      const body = this.#decoder ? bytes : this.#takeHead(bytes)
      if (body !== undefined) this.#takeBody(body)
    } catch (error) {
      if (!(error instanceof FramingError)) throw error
      this.fail('protocol', error.message)
    }
  }

  /** The node ended the connection; `error` when it did so abruptly. */
  disconnected(error: Error | undefined, reused: boolean): void {
    if (this.#ended || this.#fault) return
    if (!error && this.#decoder?.endsWithConnection) this.#finish(0)
    else if (this.#decoder) this.fail('reset', 'the node closed the connection in the middle of its answer')
    else if (this.#arrived) this.fail('reset', 'the node closed the connection in the head of its answer')
    else if (reused && this.#now() - this.#sentAt < STALE_WITHIN_MS)
      this.fail('reset', 'the node closed the kept-alive connection before its answer began', true)
    else this.fail('reset', 'the node closed the connection before its answer began')
  }

  fail(kind: Failure['class'], message: string, stale = false, isSuspect = true): void {
    if (this.#ended || this.#fault) return
    const elapsedMs = this.#now() - this.#sentAt
    const failure = { class: kind, message, bytes: this.#received, elapsedMs }
    const fault = new NodeFault(stale ? { ...failure, stale } : failure)
    this.#fault = fault
    this.#unlisten()
    if (!this.#decoder) this.#rejectHead(fault)
    this.#waiting?.reject(fault)
    this.#waiting = undefined
    this.#line.destroy(isSuspect && !this.#arrived)
  }

  /** One call at a time. What arrived before a failure is handed out before the failure is. */
  read(): Promise<Uint8Array | undefined> {
    const piece = this.#takeQueued()
    if (piece) return Promise.resolve(piece)
    if (this.#fault) return Promise.reject(this.#fault)
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  ready(): Uint8Array | 'end' | undefined {
    return this.#takeQueued() ?? (this.#ended ? 'end' : undefined)
  }

  close(isOverdue = false): void {
    this.#cancel('the answer was closed before its end', isOverdue)
  }

  /** A client that leaves, or an attempt that is not wanted any more, tells nothing of the connection. */
  #cancel(message: string, isSuspect: boolean): void {
    this.#queue.length = 0
    this.#queued = 0
    this.fail('reset', message, false, isSuspect)
  }

  #unlisten(): void {
    if (this.#onAbort) this.#signal?.removeEventListener('abort', this.#onAbort)
  }

  #takeQueued(): Uint8Array | undefined {
    if (this.#queued === 0) return undefined
    const piece = this.#queue.shift() as Uint8Array
    this.#queued -= piece.length
    if (this.#paused && this.#queued <= BUFFER_LIMIT_BYTES / 2) this.#setPaused(false)
    return piece
  }

  /** What follows the head in these bytes, undefined while the head is incomplete. Heads of 1xx are skipped. */
  #takeHead(bytes: Buffer): Buffer | undefined {
    const scanned = this.#head.length
    let rest = scanned === 0 ? bytes : Buffer.concat([this.#head, bytes])
    for (let from = Math.max(0, scanned - 2); ; from = 0) {
      if (!looksLikeHead(rest)) throw new FramingError('the node did not answer in HTTP/1.x')
      const end = headEnd(rest, from)
      if (end > HEAD_LIMIT_BYTES || (end === -1 && rest.length > HEAD_LIMIT_BYTES)) {
        throw new FramingError('the head of the answer is larger than 64 KB')
      }
      if (end === -1) {
        this.#head = rest
        return undefined
      }
      const head = parseHead(rest, end)
      rest = part(rest, end, rest.length)
      if (head.status === 101) throw new FramingError('the node switched to another protocol')
      if (head.status >= 200) {
        this.#begin(head)
        return rest
      }
      if (rest.length === 0) {
        this.#head = EMPTY
        return undefined
      }
    }
  }

  #begin(head: ResponseHead): void {
    this.#head = EMPTY
    this.status = head.status
    this.headers = head.headers
    if (head.framing.kind === 'length') this.contentLength = head.framing.length
    if (head.keepAlive) this.#reusableMs = head.keepAliveMs - KEEP_ALIVE_MARGIN_MS
    this.#decoder = createBodyDecoder(this.#wantsBody ? head.framing : NO_BODY)
    this.#resolveHead(this)
  }

  #takeBody(bytes: Buffer): void {
    const decoder = this.#decoder as BodyDecoder
    const piece = bytes.length === 0 ? undefined : decoder.push(bytes)
    if (piece) this.#offer(piece)
    if (decoder.done) this.#finish(decoder.overrun ? 0 : this.#reusableMs)
  }

  #offer(piece: Buffer): void {
    this.#received += piece.length
    if (this.#waiting) {
      this.#waiting.resolve(piece)
      this.#waiting = undefined
      return
    }
    this.#queue.push(piece)
    this.#queued += piece.length
    if (this.#queued > BUFFER_LIMIT_BYTES && !this.#paused) this.#setPaused(true)
  }

  /** The last byte is here: the connection is free, whether or not the reader has come so far. */
  #finish(reusableMs: number): void {
    this.#ended = true
    this.#unlisten()
    this.#waiting?.resolve(undefined)
    this.#waiting = undefined
    if (this.#paused) this.#setPaused(false)
    this.#line.release(reusableMs)
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused
    if (paused) this.#line.pause()
    else this.#line.resume()
  }
}
