import { RouterError } from '../domain/errors'
import type { Failure } from '../domain/facts'
import type { NodeDescription, NodeKind } from '../domain/node'
import { SlotMap } from '../domain/slot-map'
import type { Writable } from '../domain/writable'
import type { Clock } from '../ports/clock'
import { type Flow, NodeFault, type NodeGateway, type ReplyListener } from '../ports/node-gateway'
import type { Exchange, Exchanges, OwnAnswer, UpstreamRequest } from '../wire/exchange'
import type { NodeAdapter } from './adapter'
import { boundedMap } from './bounded-map'
import type { NodeHttp } from './http'
import { nativeDialects } from './native'
import { createEnvelopes } from './outgoing'
import { Relay } from './relay'
import { Told } from './told'
import type { UpstreamClient, UpstreamSend } from './upstream'

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
  /** The next process knows what is left to a node; else nothing is. */
  readonly isRemembered?: boolean
}

const REMEMBERED_NODES = 2_000

/** The core's door to the nodes: control calls through the adapters, inference through the relay. */
export const createGateway = (deps: GatewayDeps): NodeGateway => {
  const relays = new SlotMap<Relay>()
  /** By address: how a request is put to a node depends on what it is. */
  const told = boundedMap<Told>(REMEMBERED_NODES)
  const envelopeFor = createEnvelopes(deps.instance)

  const onOver = (relay: Relay): void => {
    // A later attempt of the same request may stand here by now.
    if (relays.get(relay.call.request) === relay) relays.delete(relay.call.request)
  }

  return {
    async report(node, signal) {
      const report = await deps.adapters(node.kind).report(controlled(node), deps.http, signal)
      told.set(node.url, new Told(report))
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
      const adapter = deps.adapters(node.kind)
      const known = told.get(node.url)
      const native = known ? known.native(adapter) : nativeDialects(adapter, undefined)
      const own = exchange.loaded?.(native)
      if (own) {
        later(signal, () => answer(listener, own))
        return idleFlow(deps.clock)
      }

      let request: UpstreamRequest
      try {
        const target: Writable<Parameters<Exchange['request']>[0]> = { node, model, native }
        if (contextTokens !== undefined) target.contextTokens = contextTokens
        const capabilities = known?.capabilities(model)
        if (capabilities !== undefined) target.capabilities = capabilities
        request = exchange.request(target)
      } catch (error) {
        const refusal = RouterError.from(error)
        later(signal, () => listener.refused(refusal))
        return idleFlow(deps.clock)
      }

      const relay = new Relay({ call, exchange, request, listener, signal, clock: deps.clock, onOver })
      relays.set(call.request, relay)
      const { url, headers } = envelopeFor(node, request)
      const { method, body } = request
      const { connectTimeoutMs } = deps.limits
      const outgoing: UpstreamSend = { url, method, headers, body, connectTimeoutMs, signal, sender: relay }
      void relay.run(adapter.send ? adapter.send(outgoing, deps.upstream) : deps.upstream.send(outgoing))
      return relay.flow
    },

    cut: (request, failure, isLeft) => relays.get(request)?.cut(failure, isLeft === true && deps.isRemembered === true),
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
