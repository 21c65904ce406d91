import { RouterError, statusOf } from '../../src/domain/errors'
import type { FactOf, Failure, PhaseName } from '../../src/domain/facts'
import { laneOf } from '../../src/domain/lanes'
import type { Writable } from '../../src/domain/writable'
import type { Api } from '../flat'
import { address, type DispatcherEvent, type RequestEvent } from '../protocol'
import type { RequestContext } from './context'
import { isVideo } from './deadlines'
import { errorOf, exclude, lastFailureOf, mayTryAgain, wasUnsent } from './failures'

type RequestApi = Api<RequestEvent>
type Of<T extends RequestEvent['type']> = Extract<RequestEvent, { type: T }>
type Action = (context: RequestContext, event: RequestEvent, api: RequestApi) => void

const enterPhase = (context: RequestContext, phase: PhaseName, node?: string, model?: string): void => {
  context.phase = phase
  const { job, ports } = context
  const fact: Writable<FactOf<'request.phase'>> = { type: 'request.phase', at: ports.now(), request: job.id, phase }
  if (node !== undefined) fact.node = node
  if (model !== undefined) fact.model = model
  ports.journal.record(fact)
}

const ask = (context: RequestContext, cause: 'arrival' | 'hold' | 'retry', api: RequestApi): void => {
  const { job, attempt, excluded, unreached } = context
  const asked: Writable<Extract<DispatcherEvent, { type: 'request.place' }>> = {
    type: 'request.place',
    job,
    attempt,
    cause,
    excluded,
  }
  if (unreached.length > 0) asked.unreached = unreached
  api.send(address.dispatcher, asked)
}

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
  context.ending = {
    end,
    status: statusOf(error.code, context.job.dialect),
    code: error.code,
    message: error.message,
    error,
  }
}

const noteFailure = (context: RequestContext, failure: Failure, api: RequestApi, retried: boolean): void => {
  const { place, ports, job, attempt } = context
  context.lastFailure = failure
  if (place === undefined) return
  context.lastFailedNode = place.node
  if (failure.stale) context.staleAt = place.node
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
  api.send(address.node(place.node), { type: 'attempt.failed', failure, model: place.model, lane: laneOf(job.needs) })
}

const tellSucceeded = ({ place, ports }: RequestContext, api: RequestApi): void => {
  if (place !== undefined && ports.awaitsSuccess(place.node))
    api.send(address.node(place.node), { type: 'attempt.succeeded' })
}

export const isQueueCrash = ({ reason }: Of<'queue.refused'>): boolean => reason === 'queue_restarted'

/** By what the nodes said: their failure, or that the client asked for something that none of them has. */
const failOn = (context: RequestContext, error: RouterError): void =>
  fail(context, error, error.code === 'model_not_found' ? 'rejected' : 'failed')

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
  forgetBound: (context, event) => {
    context.bound = undefined
    if (isQueueCrash(event as Of<'queue.refused'>)) context.queueCrashes += 1
  },
  noteBlame: (context, event) => {
    context.hasBlame ||= (event as Of<'place.again'>).blamed === true
  },
  failInternal: (context) => fail(context, new RouterError('internal', 'The router failed on this request.'), 'failed'),
  takeRefusal: (context, event) => {
    const { error } = event as Of<'placement.refused'> | Of<'reply.refused'>
    const ours = error.code !== 'upstream_failed'
    if (ours) fail(context, error, error.code === 'deadline_exceeded' ? 'expired' : 'rejected')
    else failOn(context, errorOf(context, context.lastFailure, context.lastFailedNode).with(error.details))
  },
  takeSlot: (context, event) => {
    const { node, model, queue, residency, contextTokens, loadMs } = event as Of<'slot.granted'>
    context.place = {
      node,
      model,
      queue,
      residency,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      ...(loadMs === undefined ? {} : { loadMs }),
    }
    context.bound = undefined
    context.retries = context.attempt - 1
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
  askElsewhere: ({ job, attempt, excluded, unreached, place }, event, api) => {
    const { node } = event as Of<'node.wedged'>
    if (place?.node !== node) return
    api.send(address.dispatcher, { type: 'request.elsewhere', job, attempt, excluded: [...excluded, node], unreached })
  },
  noteStandstill: (context, _event, api) => {
    const elapsedMs = context.ports.now() - context.startedAt
    const message = `No first byte after ${Math.round(elapsedMs / 1000)} s on a node that makes no progress (health.stall_after).`
    noteFailure(context, { class: 'first_byte_timeout', message, bytes: 0, elapsedMs }, api, true)
  },
  noteFirstByte: (context, event, api) => {
    context.firstByteMs = (event as Of<'reply.started'>).firstByteMs
    if (!context.stalled || context.place === undefined) return
    context.stalled = false
    api.send(address.node(context.place.node), { type: 'request.unstalled', request: context.job.id })
  },
  noteFailure: (context, event, api) =>
    noteFailure(context, (event as Of<'reply.failed'>).failure, api, wasUnsent(context, event) || mayTryAgain(context)),
  /** Neither node is to blame: the breaker of the first takes back what it counted, that of the second hears nothing. */
  noteRequestsFault: ({ place, lastFailedNode, ports, job, attempt }, event, api) => {
    const { failure } = event as Of<'reply.failed'>
    if (place === undefined || lastFailedNode === undefined) return
    const { node, model } = place
    const at = ports.now()
    ports.journal.record({ type: 'attempt.failed', at, request: job.id, node, model, attempt, failure, retried: false })
    api.send(address.node(lastFailedNode), { type: 'attempt.forgiven', message: failure.message })
  },
  noteFirstByteTimeout: (context, _event, api) => {
    const elapsedMs = context.ports.now() - context.startedAt
    const message = `No first byte within ${Math.round(elapsedMs / 1000)} s (limits.first_token_timeout).`
    const stale = context.flow?.isUnproven ? { stale: true as const } : {}
    if (context.flow) context.flow.isOverdue = true
    const failure: Failure = { class: 'first_byte_timeout', message, bytes: 0, elapsedMs, ...stale }
    noteFailure(context, failure, api, mayTryAgain(context))
  },
  noteRejected: (context, event, api) => {
    const { failure } = event as Of<'reply.failed'>
    context.ending = {
      end: 'rejected',
      status: failure.status ?? 400,
      code: 'upstream_rejected',
      message: failure.message,
    }
    tellSucceeded(context, api)
  },
  excludeNode: (context) => {
    const { place, lastFailure } = context
    if (place === undefined) return
    exclude(context, place.node, lastFailure, lastFailure?.class === 'model_missing' ? place.model : undefined)
    context.engineMs += context.ports.now() - context.startedAt
    context.place = undefined
    context.flow = undefined
  },
  readmitStale: (context) => {
    context.excluded = context.excluded.filter((node) => node !== context.staleAt)
    context.staleAt = undefined
  },
  excludeLost: (context, event) => {
    const { node, model, failure } = event as Of<'placement.lost'>
    if (failure === undefined) return
    exclude(context, node, failure, model)
    context.lastFailure = failure
    context.lastFailedNode = node
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
    failOn(context, errorOf(context, failure ?? context.lastFailure, node))
  },
  failLast: (context) => failOn(context, errorOf(context, context.lastFailure, context.place?.node)),
  expireHold: (context) => {
    const seconds = Math.round(context.ports.config.policy.holdTimeoutMs / 1000)
    const { words, nodes } = lastFailureOf(context)
    const message = `No node could take '${context.job.asked}' within ${seconds} s (policy.hold_timeout).${words}`
    const hint = `fleet explain ${context.job.id} shows what each node lacked.`
    fail(context, new RouterError('no_capacity', message, { retryAfterSeconds: 5, hint, ...nodes }), 'expired')
  },
  expireDeadline: (context) => {
    const { words, nodes } = lastFailureOf(context)
    const message = `The deadline passed before a node was free.${words}`
    fail(context, new RouterError('deadline_exceeded', message, nodes), 'expired')
  },
  noteFinished: (context, event, api) => {
    const { summary } = event as Of<'reply.finished'>
    context.summary = summary
    const { failure } = summary
    context.ending = {
      end: summary.end,
      status: summary.status,
      ...(failure === undefined ? {} : { code: failure.class, message: failure.message }),
    }
    if (failure === undefined) tellSucceeded(context, api)
    else noteFailure(context, failure, api, false)
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
  /** Our own limit: it says nothing about the node. */
  capTotal: (context) => {
    const { flow, ports, job, firstByteMs } = context
    const elapsedMs = ports.now() - context.startedAt
    const seconds = Math.round(elapsedMs / 1000)
    const message = isVideo(context)
      ? `The video took longer than ${seconds} s (limits.video_timeout).`
      : `The answer took longer than ${seconds} s (limits.total_timeout).`
    context.bytes = flow?.bytes ?? 0
    if (firstByteMs === undefined) {
      fail(context, new RouterError('upstream_timeout', message), 'failed')
      if (context.ending !== undefined) context.ending = { ...context.ending, code: 'total_cap' }
      return
    }
    ports.gateway.cut(job.id, { class: 'total_cap', message, bytes: context.bytes, elapsedMs })
    context.ending = { end: 'incomplete', status: 200, code: 'total_cap', message }
  },
  /** No last word: it would stand behind all that the client does not take. Leaving the state breaks the body off. */
  cutStalledClient: (context) => {
    context.ending = {
      end: 'client_disconnected',
      status: 499,
      code: 'client_stalled',
      message: 'The client stopped reading (limits.stream_idle_timeout).',
    }
    context.bytes = context.flow?.bytes ?? 0
  },
  noteClientLeft: (context, event) => {
    context.bytes = (event as Of<'client.left'>).bytes ?? context.flow?.bytes ?? 0
    context.ending = { end: 'client_disconnected', status: 499, code: 'client_disconnected' }
  },
  noteHeaders: (context) => {
    context.hasHeaders = true
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
    const bytes = flow?.bytes ?? 0
    const elapsedMs = ports.now() - context.startedAt
    ports.gateway.cut(context.job.id, { class: 'truncated', message, bytes, elapsedMs }, reason === 'draining')
    context.bytes = bytes
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
