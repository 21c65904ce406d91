import { RouterError } from '../domain/errors'
import type { Failure } from '../domain/facts'
import type { NodeDescription, NodeKind } from '../domain/node'
import type { Clock } from '../ports/clock'
import { type Flow, NodeFault, type NodeGateway, type ReplyListener } from '../ports/node-gateway'
import type { Exchange, UpstreamRequest } from '../wire/exchange'
import type { NodeAdapter } from './adapter'
import type { NodeHttp } from './http'
import { Relay } from './relay'
import type { UpstreamClient } from './upstream'

export interface GatewayDeps {
  adapters(kind: NodeKind): NodeAdapter
  readonly http: NodeHttp
  readonly upstream: UpstreamClient
  /** The calls in progress by request id; the HTTP layer puts them in and takes them out. */
  readonly exchanges: ReadonlyMap<string, Exchange>
  readonly clock: Clock
  readonly limits: { readonly connectTimeoutMs: number }
  /** This router's own id, by which it recognises a request that went in a circle. */
  readonly instance: string
}

/** Set here or by the HTTP client, whatever a dialect puts into its headers. */
const OURS = new Set(['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'host', 'connection'])

/** The core's door to the nodes: control calls through the adapters, inference through the relay. */
export const createGateway = (deps: GatewayDeps): NodeGateway => {
  const relays = new Map<string, Relay>()

  const headersFor = (node: NodeDescription, request: UpstreamRequest): Record<string, string> => {
    const headers: Record<string, string> = { 'x-fleet-via': deps.instance }
    for (const name in request.headers) {
      if (!OURS.has(name)) headers[name] = request.headers[name] as string
    }
    if (node.key !== undefined) headers.authorization = `Bearer ${node.key}`
    return headers
  }

  return {
    report: (node, signal) => deps.adapters(node.kind).report(node, deps.http, signal),

    async load(node, model, options, signal) {
      const { load } = deps.adapters(node.kind)
      if (!load) throw unsupported(node, 'load')
      await load(node, model, options, deps.http, signal)
    },

    async unload(node, model, signal) {
      const { unload } = deps.adapters(node.kind)
      if (!unload) throw unsupported(node, 'unload')
      await unload(node, model, deps.http, signal)
    },

    forward(call, listener, signal) {
      if (signal.aborted) return idleFlow(deps.clock)
      const exchange = deps.exchanges.get(call.request)
      if (!exchange) return refuse(deps.clock, listener, signal, 'the request is not in progress any more')
      const { node, model, contextTokens } = call
      const { native } = deps.adapters(node.kind)

      let request: UpstreamRequest
      try {
        const context = contextTokens === undefined ? {} : { contextTokens }
        request = exchange.request({ node, model, native, ...context })
      } catch (error) {
        const refusal = RouterError.from(error)
        later(signal, () => listener.refused(refusal))
        return idleFlow(deps.clock)
      }

      const onOver = (): void => {
        // A later attempt of the same request may stand here by now.
        if (relays.get(call.request) === relay) relays.delete(call.request)
      }
      const relay = new Relay({ call, exchange, request, listener, signal, clock: deps.clock, onOver })
      relays.set(call.request, relay)
      const sent = deps.upstream.send({
        url: node.url + request.path,
        method: request.method,
        headers: headersFor(node, request),
        body: request.body,
        connectTimeoutMs: deps.limits.connectTimeoutMs,
        signal,
      })
      void relay.run(sent)
      return relay.flow
    },

    cut: (request, failure) => relays.get(request)?.cut(failure),
  }
}

/** Fails a call that was never sent, in a later turn: a listener hears nothing while `forward` still runs. */
const refuse = (clock: Clock, listener: ReplyListener, signal: AbortSignal, message: string): Flow => {
  const failure: Failure = { class: 'protocol', message, bytes: 0, elapsedMs: 0 }
  later(signal, () => listener.failed(failure))
  return idleFlow(clock)
}

const later = (signal: AbortSignal, tell: () => void): void =>
  queueMicrotask(() => {
    if (!signal.aborted) tell()
  })

const idleFlow = (clock: Clock): Flow => ({ lastByteAt: clock.now(), bytes: 0, clientStalledSince: 0 })

const unsupported = (node: NodeDescription, verb: string): NodeFault => {
  const message = `a node of kind ${node.kind} cannot ${verb} models`
  return new NodeFault({ class: 'rejected', message, bytes: 0, elapsedMs: 0 })
}
