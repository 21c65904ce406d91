import type { Priority } from '../../domain/job'
import type { NodeDescription } from '../../domain/node'
import type { Reply } from '../../ports/node-gateway'
import type { Dialect, InferenceRoute } from '../../wire/dialect'
import type { Exchange } from '../../wire/exchange'
import { readBody } from '../body'
import { capped, contextOf } from '../context'
import type { ServerDeps } from '../deps'
import { setHeaders } from '../header-values'
import { findModel, holdersOf } from '../models'
import { noteOf, waitingBody, within } from '../patience'
import type { Call, Route } from '../route'

/** Proxies and browsers must not hold a stream back. */
const streamHeaders = { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }
const eventStream = { ...streamHeaders, 'content-type': 'text/event-stream' }

type Followed = Pick<Call, 'hangUp' | 'answered' | 'release'>

/** The reply for the client; its connection follows how the body ends, and what was held for it is released then. */
export const toResponse = (reply: Reply, call: Followed): Response => {
  follow(reply, call)
  const headers = new Headers()
  if (reply.body instanceof ReadableStream) setHeaders(headers, streamHeaders)
  setHeaders(headers, reply.headers)
  try {
    return new Response(reply.body, { status: reply.status, headers })
  } catch (error) {
    // Nobody will read this body, and its node must hear of that.
    if (reply.body instanceof ReadableStream) void reply.body.cancel(error)
    throw error
  }
}

const follow = (reply: Reply, call: Followed): void => {
  if (!(reply.body instanceof ReadableStream)) {
    over(call)
    return
  }
  reply.onAbandoned?.(() => call.hangUp())
  reply.onOver?.(() => over(call))
}

const over = (call: Followed): void => {
  call.release()
  call.answered()
}

type Patient = Exchange & Required<Pick<Exchange, 'keepAlive'>>

const canWait = (exchange: Exchange): exchange is Patient => exchange.job.stream && exchange.keepAlive !== undefined

/** A request that takes a model out of memory: only a node that runs Ollama can be asked for that. */
const toOllama = (exchange: Exchange, holders: readonly NodeDescription[]): Exchange => {
  const able = holders.find(({ kind }) => kind === 'ollama')
  return able === undefined ? exchange : { ...exchange, job: { ...exchange.job, pin: able.name } }
}

/** Answers one call of an endpoint that runs a model. */
export type Serve = (route: InferenceRoute, call: Call) => Promise<Response>

/** A dialect owns its bytes; here is only what HTTP adds. */
export const createServe = (deps: ServerDeps): Serve => {
  const { config, fleet, exchanges, decisions, clock } = deps

  const submit = async ({ job }: Exchange, signal: AbortSignal): Promise<Reply> => {
    try {
      return await fleet.submit(job, signal)
    } finally {
      // The gateway took the exchange when it sent the request; from the first byte on nothing looks it up again.
      exchanges.delete(job.id)
    }
  }

  const note = (id: string): string | undefined => {
    const record = config.server.loadingNotes === 'off' ? undefined : decisions.get(id)
    return record && noteOf(record, clock.now())
  }

  /** An event stream that does not begin in time gets its headers and comments until it does. */
  const answerInTime = async (exchange: Patient, call: Call): Promise<Response> => {
    const { request, id } = call
    const client = new AbortController()
    const left = (): void => client.abort()
    request.signal.addEventListener('abort', left, { once: true })
    if (request.signal.aborted) left()
    const submitted = submit(exchange, client.signal)
    const reply = await within(submitted, config.server.holdHeadersMs, clock)
    if (reply) return toResponse(reply, call)
    fleet.headersSent(id)
    // Not when the client first reads of it: one that has left by then never does.
    submitted.then(
      (begun) => follow(begun, call),
      () => over(call),
    )
    const body = waitingBody({ exchange, submitted, clock, note: () => note(id), left })
    return new Response(body, { status: 200, headers: eventStream })
  }

  return async (route, call) => {
    const { id, at, path, request, caller } = call
    const { server, priorities } = config
    const context = contextOf(request.headers, at, caller, priorities)
    const cap = (asked: Priority): Priority => capped(asked, caller?.priority, priorities)
    const body = await readBody(request, server.maxBodyBytes, call)
    call.received()
    const settings = { keepBillingHeader: !server.stripBillingHeader, repairToolCalls: server.repairToolCalls }
    const decoded = route.decode({ id, at, path, headers: request.headers, body, context, cap, ...settings })

    const { job, unloaded } = decoded
    const holders = unloaded && holdersOf(findModel(fleet, job.asked), fleet.descriptions(), job.pin)
    // Placing it would bring the model into memory first.
    if (unloaded && holders?.length === 0) {
      return toResponse({ status: 200, headers: { 'content-type': unloaded.contentType }, body: unloaded.body }, call)
    }

    const exchange = holders ? toOllama(decoded, holders) : decoded
    exchanges.set(id, exchange)
    if (server.holdHeadersMs > 0 && canWait(exchange)) return answerInTime(exchange, call)
    const reply = await submit(exchange, request.signal)
    return toResponse(reply, call)
  }
}

/** The endpoints of every dialect that run a model. */
export const inferenceRoutes = ({ dialects }: ServerDeps, serve: Serve): Route[] => {
  const toRoute = (dialect: Dialect, route: InferenceRoute): Route => ({
    method: route.method,
    path: route.path,
    access: 'inference',
    refuser: dialect,
    patient: true,
    handle: (call) => serve(route, call),
  })

  return dialects.flatMap((dialect) => dialect.inference.map((route) => toRoute(dialect, route)))
}
