import { RouterError } from '../domain/errors'
import type { Failure } from '../domain/facts'
import { sameModel } from '../domain/job'
import type { NodeDescription, NodeKind, NodeReport } from '../domain/node'
import type { Clock } from '../ports/clock'
import { type Flow, NodeFault, type NodeGateway, type ReplyListener } from '../ports/node-gateway'
import type { Exchanges, OwnAnswer, UpstreamRequest } from '../wire/exchange'
import type { NodeAdapter } from './adapter'
import { boundedMap } from './bounded-map'
import type { NodeHttp } from './http'
import { nativeDialects } from './native'
import { Relay } from './relay'
import type { UpstreamClient, UpstreamSend } from './upstream'
import { SlotMap } from '../domain/slot-map'

export interface GatewayDeps {
  adapters(kind: NodeKind): NodeAdapter
  readonly http: NodeHttp
  readonly upstream: UpstreamClient
  /** The calls in progress by request id; the HTTP layer puts them in and takes them out. */
  readonly exchanges: Pick<Exchanges, 'get'>
  readonly clock: Clock
  readonly limits: { readonly connectTimeoutMs: number }
  /** This router's own id, by which it recognises a request that went in a circle. */
  readonly instance: string
}

const REMEMBERED_NODES = 2_000

/** Set here or by the HTTP client, whatever a dialect puts into its headers. */
const OURS = new Set(['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'host', 'connection'])

/** The core's door to the nodes: control calls through the adapters, inference through the relay. */
export const createGateway = (deps: GatewayDeps): NodeGateway => {
  const relays = new SlotMap<Relay>()
  /** What each node last told of itself, by its address: how a request is put to it depends on that. */
  const reports = boundedMap<NodeReport>(REMEMBERED_NODES)

  const headersFor = (node: NodeDescription, request: UpstreamRequest): Record<string, string> => {
    const headers: Record<string, string> = { 'x-fleet-via': deps.instance }
    for (const name in request.headers) {
      if (!OURS.has(name)) headers[name] = request.headers[name] as string
    }
    if (node.key !== undefined) headers.authorization = `Bearer ${node.key}`
    return headers
  }

  return {
    async report(node, signal) {
      const report = await deps.adapters(node.kind).report(controlled(node), deps.http, signal)
      reports.set(node.url, report)
      return report
    },

    async load(node, model, options, signal) {
      const { load } = deps.adapters(node.kind)
      if (!load) throw unsupported(node, 'load')
      await load(controlled(node), model, options, deps.http, signal)
    },

    async unload(node, model, signal) {
      const { unload } = deps.adapters(node.kind)
      if (!unload) throw unsupported(node, 'unload')
      await unload(controlled(node), model, deps.http, signal)
    },

    forward(call, listener, signal) {
      if (signal.aborted) return idleFlow(deps.clock)
      const exchange = deps.exchanges.get(call.request)
      if (!exchange) return refuse(deps.clock, listener, signal, 'the request is not in progress any more')
      const { node, model, contextTokens } = call
      const report = reports.get(node.url)
      const native = nativeDialects(deps.adapters(node.kind), report?.version)
      const own = exchange.loaded?.(native)
      if (own) {
        later(signal, () => answer(listener, own))
        return idleFlow(deps.clock)
      }

      let request: UpstreamRequest
      try {
        const capabilities = report?.models.find(({ name }) => sameModel(name, model))?.capabilities
        request = exchange.request({
          node,
          model,
          native,
          ...(contextTokens === undefined ? {} : { contextTokens }),
          ...(capabilities === undefined ? {} : { capabilities }),
        })
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
      const { send = deps.upstream.send } = deps.adapters(node.kind)
      const outgoing: UpstreamSend = {
        url: node.url + request.path,
        method: request.method,
        headers: headersFor(node, request),
        body: request.body,
        connectTimeoutMs: deps.limits.connectTimeoutMs,
        signal,
        onSending: (reused) => {
          relay.flow.isUnproven = reused
        },
      }
      const sent = send(outgoing, deps.upstream)
      void relay.run(sent)
      return relay.flow
    },

    cut: (request, failure) => relays.get(request)?.cut(failure),
  }
}

/** The node at the address of its control calls, which may be another one than that of its OpenAI endpoint. */
const controlled = (node: NodeDescription): NodeDescription =>
  node.residencyUrl === undefined ? node : { ...node, url: node.residencyUrl }

/** Fails a call that was never sent, in a later turn: a listener hears nothing while `forward` still runs. */
const refuse = (clock: Clock, listener: ReplyListener, signal: AbortSignal, message: string): Flow => {
  const failure: Failure = { class: 'protocol', message, bytes: 0, elapsedMs: 0 }
  later(signal, () => listener.failed(failure))
  return idleFlow(clock)
}

const answer = (listener: ReplyListener, { contentType, body }: OwnAnswer): void => {
  listener.started({ status: 200, headers: { 'content-type': contentType }, body }, 0)
  listener.finished({ end: 'completed', status: 200, bytes: body.length, durationMs: 0 })
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
