import type { Reply } from '../../ports/node-gateway'
import type { Dialect, InferenceRoute } from '../../wire/dialect'
import { readBody } from '../body'
import { contextOf } from '../context'
import type { ServerDeps } from '../deps'
import { setHeaders } from '../header-values'
import { findModel, isInMemory } from '../models'
import type { Call, Route } from '../route'

/** Proxies and browsers must not hold a stream back. */
const streamHeaders = { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }

const toResponse = (reply: Reply): Response => {
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

/** The endpoints of every dialect that run a model. A dialect owns its bytes; here is only what HTTP adds. */
export const inferenceRoutes = (deps: ServerDeps): Route[] => {
  const { config, fleet, exchanges } = deps

  const serve = async (route: InferenceRoute, call: Call): Promise<Response> => {
    const { id, at, path, request, caller } = call
    const context = contextOf(request.headers, at, caller)
    const body = await readBody(request, config.server.maxBodyBytes)
    const keepBillingHeader = !config.server.stripBillingHeader
    const exchange = route.decode({ id, at, path, headers: request.headers, body, context, keepBillingHeader })

    const { job, unloaded } = exchange
    // Placing it would bring the model into memory first.
    if (unloaded && !isInMemory(findModel(fleet.models(), job.asked))) {
      return toResponse({ status: 200, headers: { 'content-type': unloaded.contentType }, body: unloaded.body })
    }

    exchanges.set(id, exchange)
    try {
      const reply = await fleet.submit(job, request.signal)
      reply.onAbandoned?.(call.hangUp)
      return toResponse(reply)
    } finally {
      // The gateway took the exchange when it sent the request; from the first byte on nothing looks it up again.
      exchanges.delete(id)
    }
  }

  const toRoute = (dialect: Dialect, route: InferenceRoute): Route => ({
    method: route.method,
    path: route.path,
    access: 'inference',
    refuser: dialect,
    patient: true,
    handle: (call) => serve(route, call),
  })

  return deps.dialects.flatMap((dialect) => dialect.inference.map((route) => toRoute(dialect, route)))
}
