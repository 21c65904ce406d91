import type { RouterError } from '../../src/domain/errors'
import type { Failure } from '../../src/domain/facts'
import type { Writable } from '../../src/domain/writable'
import type { Call, Reply, ReplyListener, ReplySummary } from '../../src/ports/node-gateway'
import type { Api } from '../flat'
import type { RequestEvent } from '../protocol'
import type { RequestContext } from './context'

/** What the gateway tells of an attempt, as events for the request; what comes after the state was left is not heard. */
class AttemptListener implements ReplyListener {
  readonly #context: RequestContext
  readonly #api: Api<RequestEvent>
  readonly #signal: AbortSignal

  constructor(context: RequestContext, api: Api<RequestEvent>, signal: AbortSignal) {
    this.#context = context
    this.#api = api
    this.#signal = signal
  }

  started(reply: Reply, firstByteMs: number): void {
    const { ports, job } = this.#context
    ports.open(job.id, reply)
    this.#tell({ type: 'reply.started', firstByteMs })
  }

  finished(summary: ReplySummary): void {
    this.#tell({ type: 'reply.finished', summary })
  }

  failed(failure: Failure, rejected?: Reply): void {
    const { ports, job } = this.#context
    if (rejected !== undefined) ports.open(job.id, rejected)
    this.#tell({ type: 'reply.failed', failure, rejected: rejected !== undefined })
  }

  refused(error: RouterError): void {
    this.#tell({ type: 'reply.refused', error })
  }

  left(bytes: number): void {
    this.#tell({ type: 'client.left', bytes })
  }

  #tell(event: RequestEvent): void {
    if (!this.#signal.aborted) this.#api.self.send(event)
  }
}

/** One attempt at the node that the request was given; it ends when the state that it runs in is left. */
export const forward = (context: RequestContext, api: Api<RequestEvent>, signal: AbortSignal): void => {
  const { job, ports, place, attempt } = context
  const node = place === undefined ? undefined : ports.node(place.node)
  const listener = new AttemptListener(context, api, signal)
  if (place === undefined || node === undefined) {
    listener.failed({ class: 'connect', message: 'The node left the fleet.', bytes: 0, elapsedMs: 0 })
    return
  }
  const call: Writable<Call> = { request: job.id, attempt, node, model: place.model }
  if (place.contextTokens !== undefined) call.contextTokens = place.contextTokens
  context.flow = ports.gateway.forward(call, listener, signal)
}
