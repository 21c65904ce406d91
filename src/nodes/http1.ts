import { NodeFault } from '../ports/node-gateway'
import { connect } from './http1-connect'
import type { Connection, ConnectionOwner } from './http1-connection'
import { createIdlePool } from './http1-pool'
import { headOf, parseTarget, type RequestHead, type Route, splitUrl, type Target } from './http1-request'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from './upstream'

export interface UpstreamOptions {
  /** An idle connection is not reused after this. Read when one becomes idle. */
  readonly idleMs: number
  /** ms since the epoch. */
  now(): number
  readonly maxIdlePerOrigin?: number
  /** Further certificate authorities to trust, PEM. */
  readonly ca?: string
}

/** More idle connections to one node than this are closed, oldest first. */
const MAX_IDLE_PER_ORIGIN = 256

/** Targets are remembered per origin, routes per URL; a fleet has dozens, so past this the memory is simply emptied. */
const MAX_REMEMBERED = 1_024

/**
 * HTTP/1.1 for inference requests, straight on TCP. Why not `fetch`: it runs at most 512 requests at once, re-sends on
 * its own in some cases, and knows neither a connect deadline nor the age of an idle connection. This client has no
 * limit of its own on connections, and sends every request exactly once.
 */
export const createUpstreamClient = (options: UpstreamOptions): UpstreamClient => {
  const now = (): number => options.now()
  const pool = createIdlePool(() => options.idleMs, options.maxIdlePerOrigin ?? MAX_IDLE_PER_ORIGIN, now)
  const targets = new Map<string, Target>()
  const routes = new Map<string, Route>()
  let open = 0

  const owner: ConnectionOwner = {
    onIdle: (connection, reusableMs) => pool.put(connection, reusableMs),
    onUnanswered: (target) => pool.close(target.origin),
    onClosed(connection, byNode) {
      open -= 1
      pool.forget(connection, byNode)
    },
  }

  const targetOf = (origin: string): Target => {
    const known = targets.get(origin)
    if (known) return known
    if (targets.size >= MAX_REMEMBERED) targets.clear()
    const target = parseTarget(origin)
    targets.set(origin, target)
    return target
  }

  const routeTo = (url: string): Route => {
    const known = routes.get(url)
    if (known) return known
    if (routes.size >= MAX_REMEMBERED) routes.clear()
    const { origin, path } = splitUrl(url)
    const route: Route = { target: targetOf(origin), path, heads: [] }
    routes.set(url, route)
    return route
  }

  const dial = async (target: Target, timeoutMs: number, signal: AbortSignal): Promise<Connection> => {
    const ca = options.ca === undefined ? {} : { ca: options.ca }
    const connection = await connect(target, { timeoutMs, signal, now, owner, ...ca })
    open += 1
    return connection
  }

  const sendAfresh = async (target: Target, head: RequestHead, request: UpstreamSend): Promise<UpstreamReply> => {
    const connection = await dial(target, request.connectTimeoutMs, request.signal)
    if (request.signal.aborted) {
      connection.end()
      throw cancelled()
    }
    return connection.exchange(head, request)
  }

  return {
    // Not async: on a kept connection the caller then gets the promise of the answer itself.
    send(request) {
      try {
        if (request.signal.aborted) throw cancelled()
        const route = routeTo(request.url)
        const head = headOf(route, request)
        const kept = pool.take(route.target)
        return kept ? kept.exchange(head, request) : sendAfresh(route.target, head, request)
      } catch (error) {
        return Promise.reject(error)
      }
    },
    close: (origin) => pool.close(origin),
    stats: () => ({ open, idle: pool.count() }),
  }
}

const cancelled = (): NodeFault =>
  new NodeFault({ class: 'connect', message: 'the request was cancelled', bytes: 0, elapsedMs: 0 })
