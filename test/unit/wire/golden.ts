import type { NodeDescription } from '../../../src/domain/node'
import { dialects } from '../../../src/wire'
import { concat } from '../../../src/wire/bytes'
import type { Arrival } from '../../../src/wire/dialect'
import type { Exchange, NodeDialect, ReplyTransform, Timing } from '../../../src/wire/exchange'
import { nativeJobs } from '../../../src/wire/native'

/** One row of a translation table, in one direction. */
export interface Golden {
  readonly table: string
  readonly row: string
  readonly client:
    | 'openai.chat'
    | 'openai.responses'
    | 'openai.completions'
    | 'ollama.chat'
    | 'ollama.generate'
    | 'anthropic.messages'
    | 'native.job'
  readonly node: NodeDialect
  /** The client's body. */
  readonly ask: unknown
  readonly target?: { readonly contextTokens?: number; readonly keepAlive?: string }
  /** What the node gets, or the error instead. */
  readonly sent?: { readonly path: string; readonly body: unknown }
  readonly refused?: { readonly code: string; readonly param?: string }
  /** The node's answer, record by record, and the client's. */
  readonly answer?: readonly string[]
  readonly told?: readonly string[]
}

export const paths = {
  'openai.chat': '/v1/chat/completions',
  'openai.responses': '/v1/responses',
  'openai.completions': '/v1/completions',
  'ollama.chat': '/api/chat',
  'ollama.generate': '/api/generate',
  'anthropic.messages': '/v1/messages',
  'native.job': '/api/v1/jobs',
} as const

/** 2026-01-01T00:00:00Z */
export const arrivedAt = 1_767_225_600_000

export const arrivalOf = (
  path: string,
  body: string | Uint8Array,
  context: Partial<Arrival['context']> = {},
): Arrival => ({
  id: 'req_000000000001',
  at: arrivedAt,
  path,
  headers: new Headers(),
  body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
  context: { priority: 'normal', tags: [], ...context },
})

export const decodeArrival = (arrival: Arrival): Exchange => {
  const routes = [...dialects.flatMap(({ inference }) => inference), nativeJobs]
  const route = routes.find(({ path }) => path === arrival.path)
  if (!route) throw new Error(`no route ${arrival.path}`)
  return route.decode(arrival)
}

export const exchangeOf = (path: string, body: unknown): Exchange =>
  decodeArrival(arrivalOf(path, typeof body === 'string' ? body : JSON.stringify(body)))

export const nodeOf = (dialect: NodeDialect, more: Partial<NodeDescription> = {}): NodeDescription => ({
  name: 'box',
  kind: dialect === 'openai' || dialect === 'ollama' ? dialect : 'llamacpp',
  url: 'http://127.0.0.1:1',
  origin: 'configured',
  tags: [],
  distance: 0,
  ...more,
})

export const requestOf = (exchange: Exchange, golden: Pick<Golden, 'node' | 'target'>, model: string) => {
  const { contextTokens, keepAlive } = golden.target ?? {}
  return exchange.request({
    node: nodeOf(golden.node, keepAlive === undefined ? {} : { keepAlive }),
    model,
    // Whoever speaks this dialect speaks OpenAI's too.
    native: golden.node === 'anthropic' ? ['openai', 'anthropic'] : [golden.node],
    ...(contextTokens !== undefined && { contextTokens }),
  })
}

/** Sent at arrival, first byte after 250 ms, now 1.25 s later, 2 s of loading before. */
export const timing = (): Timing => ({
  sentAt: arrivedAt,
  firstByteAt: arrivedAt + 250,
  loadMs: 2_000,
  now: () => arrivedAt + 1_250,
})

export const recordEnd = (dialect: NodeDialect, stream: boolean): string => {
  if (!stream) return ''
  return dialect === 'ollama' ? '\n' : '\n\n'
}

export const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes ?? new Uint8Array())

/** Everything that comes out for the given pieces. */
export const run = (transform: ReplyTransform, pieces: readonly Uint8Array[]): string => {
  const out = [...pieces.map((piece) => transform.push(piece)), transform.end()]
  return text(concat(out.filter((piece) => piece !== undefined)))
}

/** The bytes in two pieces for every place to cut them, and one by one. */
export const cuts = function* (bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)]
  yield Array.from(bytes, (byte) => new Uint8Array([byte]))
}

/** The first way to cut the bytes with which something else comes out than when they come whole, and what; none: undefined. */
export const differingCut = (
  bytes: Uint8Array,
  outcome: (pieces: readonly Uint8Array[]) => string,
): { readonly pieces: readonly string[]; readonly said: string } | undefined => {
  const whole = outcome([bytes])
  for (const pieces of cuts(bytes)) {
    const said = outcome(pieces)
    if (said !== whole) return { pieces: pieces.map(text), said }
  }
  return undefined
}
