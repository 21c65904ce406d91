import { RouterError, statusOf } from '../../src/domain/errors'
import type { Failure, PhaseName } from '../../src/domain/facts'
import type { Api } from '../flat'
import { address, type RequestEvent } from '../protocol'
import type { RequestContext } from './context'

type RequestApi = Api<RequestEvent>
type Of<T extends RequestEvent['type']> = Extract<RequestEvent, { type: T }>
type Action = (context: RequestContext, event: RequestEvent, api: RequestApi) => void

const enterPhase = (context: RequestContext, phase: PhaseName, node?: string, model?: string): void => {
  context.phase = phase
  context.ports.journal.record({
    type: 'request.phase',
    at: context.ports.now(),
    request: context.job.id,
    phase,
    ...(node === undefined ? {} : { node }),
    ...(model === undefined ? {} : { model }),
  })
}

/** ms until the stream could have been silent (or its client stalled) for the configured time. */
export const untilIdleMs = ({ flow, ports, startedAt }: RequestContext): number => {
  const limit = ports.config.limits.streamIdleTimeoutMs
  const last = flow === undefined ? startedAt : flow.clientStalledSince > 0 ? flow.clientStalledSince : flow.lastByteAt
  return Math.max(1, Math.min(limit, last + limit - ports.now()))
}

export const isClientStalled = ({ flow, ports }: RequestContext): boolean =>
  flow !== undefined &&
  flow.clientStalledSince > 0 &&
  ports.now() - flow.clientStalledSince >= ports.config.limits.streamIdleTimeoutMs

export const isSilent = ({ flow, ports }: RequestContext): boolean =>
  flow !== undefined &&
  flow.clientStalledSince === 0 &&
  ports.now() - flow.lastByteAt >= ports.config.limits.streamIdleTimeoutMs

const ask = (context: RequestContext, cause: 'arrival' | 'hold' | 'retry', api: RequestApi): void =>
  api.send(address.dispatcher, {
    type: 'request.place',
    job: context.job,
    attempt: context.attempt,
    cause,
    excluded: context.excluded,
  })

/** Gives the slot back to its queue. */
const release = (context: RequestContext, api: RequestApi, linger?: 'prefill' | 'decode'): void => {
  const { place, job, attempt } = context
  if (place === undefined) return
  if (context.stalled) api.send(address.node(place.node), { type: 'request.unstalled', request: job.id })
  context.stalled = false
  api.send(place.queue, {
    type: 'slot.released',
    request: job.id,
    attempt,
    ...(linger === undefined ? {} : { linger }),
  })
}

const fail = (context: RequestContext, error: RouterError, end: 'failed' | 'rejected' | 'expired'): void => {
  context.ending = { end, status: statusOf(error.code), code: error.code, message: error.message, error }
}

const noteFailure = (context: RequestContext, failure: Failure, api: RequestApi, retried: boolean): void => {
  const { place, ports, job, attempt } = context
  context.lastFailure = failure
  if (place === undefined) return
  ports.journal.record({
    type: 'attempt.failed',
    at: ports.now(),
    request: job.id,
    node: place.node,
    model: place.model,
    attempt,
    failure,
    retried,
  })
  api.send(address.node(place.node), { type: 'attempt.failed', failure })
}

const mayTryAgain = ({ attempt, ports }: RequestContext): boolean => attempt <= ports.config.policy.retries

const TIMEOUTS: ReadonlySet<Failure['class']> = new Set(['connect_timeout', 'first_byte_timeout', 'idle_timeout'])

const errorOf = (context: RequestContext, failure: Failure | undefined, node: string | undefined): RouterError => {
  const timedOut = failure !== undefined && TIMEOUTS.has(failure.class)
  const where = node === undefined ? '' : ` on ${node}`
  const nodes = node === undefined || failure === undefined ? [] : [{ node, reason: failure.class }]
  if (failure?.class === 'overloaded') {
    return new RouterError('no_capacity', `'${context.job.asked}' is overloaded${where}: ${failure.message}`, {
      nodes,
      retryAfterSeconds: 2,
    })
  }
  return new RouterError(
    timedOut ? 'upstream_timeout' : 'upstream_failed',
    `'${context.job.asked}' failed${where}: ${failure?.message ?? 'unknown failure'}`,
    { nodes },
  )
}

export const actions: Readonly<Record<string, Action>> = {
  ask: (context, _event, api) => {
    if (context.phase !== 'placing') enterPhase(context, 'placing')
    ask(context, context.attempt > 1 ? 'retry' : 'arrival', api)
  },
  askHeld: (context, _event, api) => ask(context, 'hold', api),
  beginHold: (context) => {
    context.heldSince = context.ports.now()
    enterPhase(context, 'held')
  },
  endHold: (context) => {
    if (context.heldSince === 0) return
    context.heldMs += context.ports.now() - context.heldSince
    context.heldSince = 0
  },
  tellWaiting: (context, event) => {
    const { node } = event as { node?: string }
    enterPhase(context, 'waiting', node)
  },
  tellLoading: (context, event) => {
    const { node, model } = event as Of<'placement.loading'>
    enterPhase(context, 'loading', node, model)
  },
  rememberBound: (context, event) => {
    const { node, model } = event as Of<'placement.bound'>
    context.bound = { node, model }
  },
  takeRefusal: (context, event) => {
    const { error } = event as Of<'placement.refused'> | Of<'reply.refused'>
    const ours = error.code !== 'upstream_failed'
    if (ours) fail(context, error, 'rejected')
    else fail(context, errorOf(context, context.lastFailure, context.place?.node).with(error.details), 'failed')
  },
  takeSlot: (context, event) => {
    const { node, model, queue, residency, contextTokens } = event as Of<'slot.granted'>
    context.place = { node, model, queue, residency, ...(contextTokens === undefined ? {} : { contextTokens }) }
    context.bound = undefined
    context.startedAt = context.ports.now()
  },
  tellPrefill: (context) => enterPhase(context, 'prefill', context.place?.node, context.place?.model),
  tellGenerating: (context) => {
    if (context.phase !== 'generating') enterPhase(context, 'generating', context.place?.node, context.place?.model)
  },
  tellStalled: (context, _event, api) => {
    if (context.place === undefined) return
    context.stalled = true
    api.send(address.node(context.place.node), { type: 'request.stalled', request: context.job.id })
  },
  noteFirstByte: (context, event, api) => {
    context.firstByteMs = (event as Of<'reply.started'>).firstByteMs
    if (!context.stalled || context.place === undefined) return
    context.stalled = false
    api.send(address.node(context.place.node), { type: 'request.unstalled', request: context.job.id })
  },
  noteFailure: (context, event, api) =>
    noteFailure(context, (event as Of<'reply.failed'>).failure, api, mayTryAgain(context)),
  noteFirstByteTimeout: (context, _event, api) => {
    const elapsedMs = context.ports.now() - context.startedAt
    const message = `No first byte within ${Math.round(elapsedMs / 1000)} s (limits.first_token_timeout).`
    noteFailure(context, { class: 'first_byte_timeout', message, bytes: 0, elapsedMs }, api, mayTryAgain(context))
  },
  noteRejected: (context, event, api) => {
    const { failure } = event as Of<'reply.failed'>
    context.ending = {
      end: 'rejected',
      status: failure.status ?? 400,
      code: 'upstream_rejected',
      message: failure.message,
    }
    if (context.place !== undefined) api.send(address.node(context.place.node), { type: 'attempt.succeeded' })
  },
  excludeNode: (context) => {
    if (context.place !== undefined) context.excluded = [...context.excluded, context.place.node]
    context.attempt += 1
    context.place = undefined
    context.flow = undefined
  },
  excludeLost: (context, event) => {
    const { node, failure } = event as Of<'placement.lost'>
    context.attempt += 1
    if (failure === undefined) return
    context.lastFailure = failure
    context.excluded = [...context.excluded, node]
    const { ports, job, attempt } = context
    ports.journal.record({
      type: 'attempt.failed',
      at: ports.now(),
      request: job.id,
      node,
      model: job.asked,
      attempt: attempt - 1,
      failure,
      retried: true,
    })
  },
  failLost: (context, event) => {
    const { node, failure } = event as Of<'placement.lost'>
    fail(context, errorOf(context, failure ?? context.lastFailure, node), 'failed')
  },
  failLast: (context) => fail(context, errorOf(context, context.lastFailure, context.place?.node), 'failed'),
  expireHold: (context) => {
    const seconds = Math.round(context.ports.config.policy.holdTimeoutMs / 1000)
    fail(
      context,
      new RouterError(
        'no_capacity',
        `No node could take '${context.job.asked}' within ${seconds} s (policy.hold_timeout).`,
        { retryAfterSeconds: 5, hint: 'fleet explain shows what each node lacked.' },
      ),
      'expired',
    )
  },
  expireDeadline: (context) =>
    fail(context, new RouterError('deadline_exceeded', 'The deadline passed before a node was free.'), 'expired'),
  noteFinished: (context, event, api) => {
    const { summary } = event as Of<'reply.finished'>
    context.summary = summary
    const { failure } = summary
    context.ending = {
      end: summary.end,
      status: summary.status,
      ...(failure === undefined ? {} : { code: failure.class, message: failure.message }),
    }
    if (failure === undefined) {
      if (context.place !== undefined) api.send(address.node(context.place.node), { type: 'attempt.succeeded' })
    } else noteFailure(context, failure, api, false)
  },
  cutSilent: (context, _event, api) => {
    const { flow, ports } = context
    const elapsedMs = ports.now() - context.startedAt
    const failure: Failure = {
      class: 'idle_timeout',
      message: 'The node went silent in the middle of its answer (limits.stream_idle_timeout).',
      bytes: flow?.bytes ?? 0,
      elapsedMs,
    }
    noteFailure(context, failure, api, false)
    ports.gateway.cut(context.job.id, failure)
    context.ending = { end: 'incomplete', status: 200, code: failure.class, message: failure.message }
    context.bytes = flow?.bytes ?? 0
  },
  cutStalledClient: (context) => {
    const { flow, ports } = context
    ports.gateway.cut(context.job.id, {
      class: 'idle_timeout',
      message: 'The client stopped reading.',
      bytes: flow?.bytes ?? 0,
      elapsedMs: ports.now() - context.startedAt,
    })
    context.ending = {
      end: 'client_disconnected',
      status: 499,
      code: 'client_stalled',
      message: 'The client stopped reading.',
    }
    context.bytes = flow?.bytes ?? 0
  },
  noteClientLeft: (context, event) => {
    context.bytes = (event as Of<'client.left'>).bytes ?? context.flow?.bytes ?? 0
    context.ending = { end: 'client_disconnected', status: 499, code: 'client_disconnected' }
  },
  noteCut: (context, event) => {
    const { reason } = event as Of<'request.cut'>
    const message = reason === 'draining' ? 'The router is shutting down.' : 'The router failed on this request.'
    const error = new RouterError(reason === 'draining' ? 'draining' : 'internal', message, { retryAfterSeconds: 5 })
    if (context.firstByteMs === undefined) {
      fail(context, error, 'failed')
      return
    }
    const { flow, ports } = context
    ports.gateway.cut(context.job.id, {
      class: 'truncated',
      message,
      bytes: flow?.bytes ?? 0,
      elapsedMs: ports.now() - context.startedAt,
    })
    context.bytes = flow?.bytes ?? 0
    context.ending = { end: 'incomplete', status: 200, code: error.code, message }
  },
  release: (context, _event, api) => release(context, api),
  releaseLingering: (context, _event, api) =>
    release(context, api, context.firstByteMs === undefined ? 'prefill' : 'decode'),
  /** Leaves wherever it stands; a node that was at work for it may not notice at once. */
  withdraw: (context, _event, api) => {
    const { job, place, bound } = context
    if (place !== undefined) {
      release(context, api, context.firstByteMs === undefined ? 'prefill' : 'decode')
      return
    }
    if (bound !== undefined)
      api.send(address.queues, { type: 'queue.withdraw', node: bound.node, model: bound.model, request: job.id })
    api.send(address.dispatcher, { type: 'job.gone', request: job.id })
  },
}
