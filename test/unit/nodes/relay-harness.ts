import type { RouterError } from '../../../src/domain/errors'
import type { Job } from '../../../src/domain/job'
import type { NodeDescription } from '../../../src/domain/node'
import type { NodeAdapter } from '../../../src/nodes/adapter'
import { createGateway, type GatewayDeps } from '../../../src/nodes/gateway'
import type { NodeHttp } from '../../../src/nodes/http'
import { createUpstreamClient } from '../../../src/nodes/http1'
import type { Clock } from '../../../src/ports/clock'
import type { Flow, NodeGateway, Reply, ReplyListener } from '../../../src/ports/node-gateway'
import type { Exchange, ReplyTransform, Timing, UpstreamRequest } from '../../../src/wire/exchange'
import { until } from '../../support/raw-server'

const job = (stream: boolean): Job => ({
  id: 'req_1',
  dialect: 'openai',
  operation: 'openai.chat',
  asked: 'm',
  models: ['m'],
  stream,
  needs: ['chat'],
  priority: 'normal',
  promptTokens: { value: 1, basis: 'estimated' },
  tags: [],
  arrivedAt: 0,
})

/** Passes bytes on and watches them as a dialect would: `data: [DONE]` or whole JSON is complete. */
const watch = (stream: boolean, timing: Timing): ReplyTransform => {
  let text = ''
  const error = (): string | undefined => /"error":"([^"]*)"/.exec(text)?.[1]
  return {
    contentType: stream ? 'text/event-stream' : 'application/json',
    push(chunk) {
      text = (text + Buffer.from(chunk).toString('latin1')).slice(-4_000_000)
      return chunk
    },
    end: () => undefined,
    complete: () => (stream ? text.includes('[DONE]') : text.endsWith('}') || text.endsWith('END')),
    problem() {
      const message = error()
      return message === undefined ? undefined : { message }
    },
    begun: () => timing.firstByteAt > 0 && (!stream || text.includes('data:')),
    usage: () => ({ tokensIn: 3, tokensOut: 5 }),
  }
}

export interface FakeExchange extends Exchange {
  readonly bands: RouterError[]
}

export const fakeExchange = (stream: boolean, headers: Record<string, string> = {}): FakeExchange => {
  const bands: RouterError[] = []
  return {
    job: job(stream),
    bands,
    request: ({ model }) => ({
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', ...headers },
      body: Buffer.from(JSON.stringify({ model })),
      dialect: 'openai',
      stream,
    }),
    reply: (_request: UpstreamRequest, _model: string, timing: Timing) => watch(stream, timing),
    rejection: (_request, status, body) => ({ status, contentType: 'application/json', body }),
    inBandError(error) {
      bands.push(error)
      return Buffer.from(`\n\ndata: {"in_band":"${error.code}"}\n\n`)
    },
  }
}

/** Everything that a listener heard, in order. */
export interface Heard {
  readonly events: string[]
  reply?: Reply
  firstByteMs?: number
  summary?: Parameters<ReplyListener['finished']>[0]
  failure?: Parameters<ReplyListener['failed']>[0]
  rejected?: Reply
  leftBytes?: number
  refusal?: Parameters<ReplyListener['refused']>[0]
}

export const listenTo = (heard: Heard): ReplyListener => ({
  started(reply, firstByteMs) {
    heard.events.push('started')
    Object.assign(heard, { reply, firstByteMs })
  },
  finished(summary) {
    heard.events.push('finished')
    Object.assign(heard, { summary })
  },
  failed(failure, rejected) {
    heard.events.push('failed')
    Object.assign(heard, { failure, rejected })
  },
  refused(refusal) {
    heard.events.push('refused')
    Object.assign(heard, { refusal })
  },
  left(leftBytes) {
    heard.events.push('left')
    Object.assign(heard, { leftBytes })
  },
})

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (handle) => clearTimeout(handle as Timer),
}

export const node = (url: string, more: Partial<NodeDescription> = {}): NodeDescription => ({
  name: 'rig',
  kind: 'openai',
  url,
  origin: 'configured',
  tags: [],
  distance: 0,
  ...more,
})

const adapter: NodeAdapter = {
  kind: 'openai',
  native: ['openai'],
  lingersAfterCancel: false,
  fingerprint: async () => undefined,
  report: async () => ({ models: [], resident: [], canLoad: false, canUnload: false }),
}

const noHttp: NodeHttp = {
  json: () => Promise.reject(new Error('not used')),
  raw: () => Promise.reject(new Error('not used')),
}

export interface Run {
  readonly heard: Heard
  readonly exchange: FakeExchange
  readonly gateway: NodeGateway
  readonly flow: Flow
  readonly attempt: AbortController
  /** The listener has heard that it began. */
  started(): Promise<Reply>
  /** The listener has heard its last event. */
  over(): Promise<void>
}

export interface RunOptions {
  readonly stream?: boolean
  readonly node?: Partial<NodeDescription>
  readonly headers?: Record<string, string>
  readonly adapter?: Partial<NodeAdapter>
  readonly exchange?: Partial<Exchange>
}

/** Forwards one request to the server at `url` and records what the core would hear. */
export const forward = (url: string, options: RunOptions = {}): Run => {
  const exchange = { ...fakeExchange(options.stream ?? true, options.headers), ...options.exchange }
  const gateway = gatewayWith(new Map([['req_1', exchange]]), options.adapter)
  const heard: Heard = { events: [] }
  const attempt = new AbortController()
  const call = { request: 'req_1', attempt: 1, node: node(url, options.node), model: 'm', contextTokens: 4_096 }
  const flow = gateway.forward(call, listenTo(heard), attempt.signal)
  return {
    heard,
    exchange,
    gateway,
    flow,
    attempt,
    async started() {
      await until(() => heard.reply !== undefined, 'the reply began')
      return heard.reply as Reply
    },
    over: () => until(() => heard.events.some((event) => event !== 'started'), 'the reply is over'),
  }
}

export const gatewayWith = (
  exchanges: ReadonlyMap<string, Exchange>,
  changes: Partial<NodeAdapter> = {},
  deps: Partial<Pick<GatewayDeps, 'upstream' | 'clock' | 'limits'>> = {},
): NodeGateway =>
  createGateway({
    adapters: () => ({ ...adapter, ...changes }),
    http: noHttp,
    upstream: createUpstreamClient({ idleMs: 10_000, now: () => Date.now() }),
    exchanges,
    clock: systemClock,
    limits: { connectTimeoutMs: 1_000 },
    instance: 'fleet_abc',
    ...deps,
  })

export const textOf = async (reply: Reply): Promise<string> =>
  reply.body instanceof Uint8Array ? Buffer.from(reply.body).toString() : new Response(reply.body).text()
