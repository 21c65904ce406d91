import { RouterError } from '../domain/errors'
import type { Failure } from '../domain/facts'
import type { Writable } from '../domain/writable'
import type { Clock } from '../ports/clock'
import { type Call, type Flow, NodeFault, type ReplyListener, type ReplySummary } from '../ports/node-gateway'
import type { Exchange, ReplyTransform, Timing, UpstreamRequest } from '../wire/exchange'
import { withoutQuotes } from './quoted'
import { createOutlet, type Outlet } from './relay-outlet'
import { eventClass, join, readErrorBody, refusalClass, refusalMessage, unusableContent } from './relay-refusal'
import type { UpstreamReply, UpstreamSender } from './upstream'

/** An answer that is not streamed is kept back up to here, so that another node can still replace one that dies. */
const WHOLE_LIMIT_BYTES = 1024 * 1024

/** Stands for a node's words that cannot be kept. */
const NO_WORDS = 'the node reported an error'

const TIMEOUTS: ReadonlySet<Failure['class']> = new Set(['first_byte_timeout', 'idle_timeout', 'total_cap'])

export interface RelayOptions {
  readonly call: Call
  readonly exchange: Exchange
  readonly request: UpstreamRequest
  readonly listener: ReplyListener
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Nothing more will be heard or can be cut. */
  onOver(relay: Relay): void
}

/** What is measured around a reply; a class, for one is made with every request. */
class ReplyTiming implements Timing {
  readonly sentAt: number
  firstByteAt = 0
  loadMs = 0
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
    this.sentAt = clock.now()
  }

  now(): number {
    return this.#clock.now()
  }
}

/**
 * Carries one answer from a node to its client. Until `started` nothing has reached the client and every failure may be
 * tried elsewhere; after it, whatever happens ends the client's body, in-band where the protocol has a place for it.
 */
export class Relay implements UpstreamSender {
  readonly call: Call
  readonly flow: Flow
  isLeft = false

  readonly #options: RelayOptions
  readonly #timing: Timing
  readonly #onAbort = (): void => this.#aborted()
  /** Once the request is on its way, to end it: this is the answer before its head is there. */
  #sent: Pick<UpstreamReply, 'close'> | undefined
  #reply: UpstreamReply | undefined
  #transform: ReplyTransform | undefined
  #outlet: Outlet | undefined
  /** Output that the client has not got: all of it before `started`, at most one piece afterwards. */
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  #sentBytes = 0
  #tellAbandoned: (() => void) | undefined
  #tellOver: (() => void) | undefined
  #isOver = false

  constructor(options: RelayOptions) {
    const { call, clock, signal } = options
    this.call = call
    this.#options = options
    this.#timing = new ReplyTiming(clock)
    this.flow = { lastByteAt: this.#timing.sentAt, bytes: 0, clientStalledSince: 0, isUnproven: false }
    signal.addEventListener('abort', this.#onAbort)
  }

  sending(answer: Pick<UpstreamReply, 'close'>, isReused: boolean): void {
    this.#sent = answer
    this.flow.isUnproven = isReused
    if (this.#isOver) answer.close()
  }

  async run(sent: Promise<UpstreamReply>): Promise<void> {
    try {
      const reply = await sent
      if (this.#isOver) return reply.close()
      this.#reply = reply
      this.flow.lastByteAt = this.#options.clock.now()
      this.flow.isUnproven = false
      if (reply.status < 200 || reply.status > 299) await this.#refused(reply)
      else await this.#carry(reply)
    } catch (error) {
      this.#broken(error)
    }
  }

  /** Ends the client's body with the dialect's in-band error; before the first byte, the attempt as failed. */
  cut(failure: Failure, isLeft = false): void {
    if (this.#isOver) return
    this.isLeft = isLeft
    this.#failOrBreakOff(failure)
  }

  async #carry(reply: UpstreamReply): Promise<void> {
    const unusable = unusableContent(reply)
    if (unusable) return this.#fail(this.#failure('bad_content', unusable, reply.status))

    const { exchange, request, call } = this.#options
    const transform = exchange.reply(request, call.model, this.#timing, reply.headers['content-type'])
    this.#transform = transform
    while (!this.#isOver) {
      // A small answer is here whole with its head: nothing is waited for then.
      const chunk = reply.ready?.() ?? (await reply.read()) ?? 'end'
      if (this.#isOver) return
      if (chunk === 'end') return this.#ended(transform)
      this.#arrived(chunk, transform)
      this.#hold(transform.push(chunk))
      const outlet = this.#outlet ?? this.#begin(transform)
      if (outlet?.isWanted()) this.#flush(outlet)
      else if (outlet && this.#held.length > 0) await this.#deliver(outlet)
    }
  }

  #arrived(chunk: Uint8Array, transform: ReplyTransform): void {
    const now = this.#options.clock.now()
    this.flow.lastByteAt = now
    this.flow.bytes += chunk.length
    // Set ahead of the push that begins the answer, so that the transform can already tell the time it took.
    if (!transform.begun()) this.#timing.firstByteAt = now
  }

  #hold(output: Uint8Array | undefined): void {
    if (!output || output.length === 0) return
    this.#held.push(output)
    this.#heldBytes += output.length
  }

  /** Gives the reply to the client once there is something that it must see; from then on it has an outlet. */
  #begin(transform: ReplyTransform): Outlet | undefined {
    const problem = transform.problem()
    if (problem) {
      this.#fail(this.#failure(eventClass(problem), this.#kept(problem.message) || NO_WORDS, problem.status))
      return undefined
    }
    const { job, flows = job.stream } = this.#options.exchange
    if (!(flows && transform.begun()) && this.#heldBytes <= WHOLE_LIMIT_BYTES) return undefined
    const outlet = createOutlet(() => this.#cancelled())
    this.#outlet = outlet
    this.#started(transform, outlet.stream)
    return outlet
  }

  #started(transform: ReplyTransform, body: ReadableStream<Uint8Array> | Uint8Array): void {
    const { sentAt, firstByteAt } = this.#timing
    const firstByteMs = Math.max(0, firstByteAt - sentAt)
    const status = this.#reply?.status ?? 200
    const headers = { 'content-type': transform.contentType }
    // All of it is here: nobody can break it off, and nothing more comes.
    if (body instanceof Uint8Array) {
      this.#options.listener.started({ status, headers, body }, firstByteMs)
      return
    }
    const onAbandoned = (tell: () => void): void => {
      this.#tellAbandoned = tell
    }
    const onOver = (tell: () => void): void => {
      if (this.#isOver) tell()
      else this.#tellOver = tell
    }
    this.#options.listener.started({ status, headers, body, onAbandoned, onOver }, firstByteMs)
  }

  /** Waits until the client wants what is held, then gives it. Meanwhile nothing is read from the node. */
  async #deliver(outlet: Outlet): Promise<void> {
    this.flow.clientStalledSince = this.#options.clock.now()
    await outlet.wanted()
    this.flow.clientStalledSince = 0
    if (!this.#isOver) this.#flush(outlet)
  }

  #flush(outlet: Outlet): void {
    if (this.#held.length === 0) return
    outlet.write(join(this.#held))
    this.#sentBytes += this.#heldBytes
    this.#held.length = 0
    this.#heldBytes = 0
  }

  /** The node's body has ended cleanly; whether the answer is whole is for the protocol to say. */
  #ended(transform: ReplyTransform): void {
    this.#hold(transform.end())
    const problem = transform.problem()
    if (!problem && transform.complete()) {
      this.#complete(transform)
      return
    }
    const failure = problem
      ? this.#failure(
          this.#outlet ? 'error_event' : eventClass(problem),
          this.#kept(problem.message) || NO_WORDS,
          problem.status,
        )
      : this.#failure('truncated', 'the node ended its answer without the end marker of the protocol')
    this.#failOrBreakOff(failure)
  }

  #complete(transform: ReplyTransform): void {
    this.#over()
    if (this.#outlet) {
      this.#flush(this.#outlet)
      this.#outlet.end()
    } else {
      this.#sentBytes = this.#heldBytes
      this.#started(transform, join(this.#held))
    }
    this.#options.listener.finished(this.#summary('completed'))
  }

  #failOrBreakOff(failure: Failure): void {
    if (this.#outlet) this.#breakOff(this.#outlet, failure)
    else this.#fail(failure)
  }

  #broken(error: unknown): void {
    if (this.#isOver) return
    const fault = error instanceof NodeFault ? error.failure : undefined
    const failure: Failure = fault
      ? { ...this.#failure(fault.class, fault.message), ...(fault.stale && { stale: fault.stale }) }
      : this.#failure('protocol', 'the answer of the node could not be read')
    const transform = this.#transform
    // A node that resets after its end marker has said everything.
    if (transform?.complete() && !transform.problem()) this.#ended(transform)
    else this.#failOrBreakOff(failure)
  }

  /** After the first byte: what is held, then the error where the client will see it. */
  #breakOff(outlet: Outlet, failure: Failure): void {
    this.#over()
    this.#close()
    this.#flush(outlet)
    if (!this.#options.exchange.job.stream) outlet.abort(failure.message)
    else {
      // The node's own error event has told the client already.
      if (!this.#transform?.problem()) this.#writeError(outlet, failure)
      outlet.end()
    }
    this.#options.listener.finished(this.#summary('incomplete', failure))
  }

  #writeError(outlet: Outlet, failure: Failure): void {
    const { call, exchange } = this.#options
    const isTimeout = TIMEOUTS.has(failure.class)
    const error = new RouterError(
      isTimeout ? 'upstream_timeout' : 'upstream_failed',
      `The answer of ${call.node.name} broke off: ${failure.message.replace(/\.$/, '')}.`,
      { requestId: call.request, nodes: [{ node: call.node.name, reason: failure.class }] },
    )
    const bytes = exchange.inBandError(error)
    outlet.write(bytes)
    this.#sentBytes += bytes.length
  }

  async #refused(reply: UpstreamReply): Promise<void> {
    const body = await readErrorBody(reply)
    if (this.#isOver) return
    const kind = refusalClass(reply, body)
    const failure = this.#failure(
      kind,
      refusalMessage(reply, body, (said) => this.#kept(said)),
      reply.status,
    )
    if (kind !== 'rejected') return this.#fail(failure)
    const { exchange, request, listener } = this.#options
    const rejection = exchange.rejection(request, reply.status, body)
    this.#over()
    const headers = { 'content-type': rejection.contentType }
    listener.failed(failure, { status: rejection.status, headers, body: rejection.body })
  }

  #fail(failure: Failure): void {
    this.#over()
    this.#close()
    this.#options.listener.failed(failure)
  }

  /** The client does not read any more. */
  #cancelled(): void {
    if (this.#isOver) return
    this.#over()
    this.#close()
    this.#options.listener.left(this.#sentBytes)
  }

  /** The router gave the attempt up and knows it: nobody is told. */
  #aborted(): void {
    if (this.#isOver) return
    this.#over()
    this.#close()
    this.#outlet?.abort('the request was cancelled')
    this.#tellAbandoned?.()
  }

  #close(): void {
    this.#sent?.close(this.flow.isOverdue)
    this.#reply?.close()
  }

  #over(): void {
    this.#isOver = true
    this.flow.clientStalledSince = 0
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#options.onOver(this)
    this.#tellOver?.()
  }

  /** What may be kept of a node's words; empty: nothing. */
  #kept(said: string): string {
    const { request, call, exchange } = this.#options
    return withoutQuotes(said, request.body, [call.model, exchange.job.asked]) ?? ''
  }

  #failure(kind: Failure['class'], message: string, status?: number): Failure {
    const elapsedMs = this.#options.clock.now() - this.#timing.sentAt
    return { class: kind, message, ...(status === undefined ? {} : { status }), bytes: this.flow.bytes, elapsedMs }
  }

  #summary(end: ReplySummary['end'], failure?: Failure): ReplySummary {
    const summary: Writable<ReplySummary> = {
      end,
      status: this.#reply?.status ?? 200,
      bytes: this.#sentBytes,
      durationMs: this.#options.clock.now() - this.#timing.sentAt,
    }
    const { tokensIn, tokensOut, thinkingExhausted, toolCallsRepaired } = this.#transform?.usage() ?? {}
    if (tokensIn !== undefined) summary.tokensIn = tokensIn
    if (tokensOut !== undefined) summary.tokensOut = tokensOut
    if (thinkingExhausted) summary.thinkingExhausted = thinkingExhausted
    if (toolCallsRepaired !== undefined) summary.toolCallsRepaired = toolCallsRepaired
    if (failure) summary.failure = failure
    return summary
  }
}
