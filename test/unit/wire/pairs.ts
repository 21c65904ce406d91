/**
 * Golden exchanges of each client protocol with each node protocol. What engines answer stands in `fixtures/wire/engines`, one
 * file for each of their endpoints, written by hand after what the engines send; what a client asks, what of it goes to the
 * node and what the client is told stands in `fixtures/wire/pairs`, one file for each pair.
 */
import { join } from 'node:path'
import type { NodeKind } from '../../../src/domain/node'
import { adapterFor } from '../../../src/nodes'
import { nativeDialects } from '../../../src/nodes/native'
import type { UpstreamSend } from '../../../src/nodes/upstream'
import type { Reply, ReplyListener } from '../../../src/ports/node-gateway'
import { encode } from '../../../src/wire/bytes'
import type { Exchange } from '../../../src/wire/exchange'
import { gatewayWith } from '../nodes/relay-harness'
import type { Golden } from './golden'
import { arrivedAt, exchangeOf, nodeOf, paths, text } from './golden'
import type { Section } from './sections'
import { parseSections } from './sections'

export type Client = Golden['client']

/** A node by the dialect that is meant, and the kind and version of an engine that speaks it. */
export const nodes = {
  openai: { kind: 'vllm' },
  ollama: { kind: 'ollama' },
  anthropic: { kind: 'llamacpp', version: 'b9000-1a2b3c4' },
} as const satisfies Record<string, { readonly kind: NodeKind; readonly version?: string }>

export type Node = keyof typeof nodes

export interface Pair {
  readonly client: Client
  readonly node: Node
}

const fixtures = join(import.meta.dir, '../../fixtures/wire')
export const pairsFolder = join(fixtures, 'pairs')

export const fileOf = ({ client, node }: Pair): string => `${client}-${node}.txt`

const engines: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'openai-chat.txt',
  '/v1/completions': 'openai-completions.txt',
  '/v1/messages': 'anthropic-messages.txt',
  '/api/chat': 'ollama-chat.txt',
  '/api/generate': 'ollama-generate.txt',
}

const read = async (file: string) => parseSections(await Bun.file(file).text())

export const readPair = (pair: Pair) => read(join(pairsFolder, fileOf(pair)))

export const engineFiles = [...new Set(Object.values(engines))]

export const readEngine = (file: string) => read(join(fixtures, 'engines', file))

/** An engine's answer. */
export interface Answer {
  readonly status: number
  readonly contentType: string
  readonly body: Uint8Array
}

/** What the engine at this path says in that scenario; its head is `engine status content-type`. */
export const answerAt = async (path: string, scenario: string): Promise<Answer> => {
  const [section] = (await readEngine(engines[path] ?? '')).get(scenario) ?? []
  const [, status, contentType] = /^\S+ (\d+) (.*)$/.exec(section?.head ?? '') ?? []
  if (!section || !contentType) throw new Error(`no answer at ${path} for "${scenario}"`)
  return { status: Number(status), contentType, body: encode(section.body) }
}

const adapterOf = (node: Node) => {
  const { kind, version }: { kind: NodeKind; version?: string } = nodes[node]
  const adapter = adapterFor(kind)
  return { ...adapter, native: nativeDialects(adapter, version) }
}

/** The call as the node gets it, and the exchange that reads its answer. */
export const requestFor = ({ client, node }: Pair, ask: unknown) => {
  const exchange = exchangeOf(paths[client], ask)
  const request = exchange.request({
    node: nodeOf('openai', { kind: nodes[node].kind }),
    model: 'node-model',
    native: adapterOf(node).native,
    contextTokens: 8_192,
  })
  return { exchange, request }
}

/** What came of an exchange: the sections of a pair's file below `ask`. */
export interface Outcome {
  readonly sent: { readonly path: string; readonly body: unknown }
  readonly told?: { readonly status: number; readonly contentType: string; readonly body: string }
  readonly ended: string
}

/** The answer begins that long after the request, in ms. */
const firstByteMs = 250

/** Reads the reply as a client does, at once: a relay waits for its reader. */
const bodyOf = async ({ body }: Reply): Promise<string> =>
  body instanceof Uint8Array ? text(body) : new Response(body).text()

const tokens = (name: string, count: number | undefined): string[] => (count === undefined ? [] : [`${name}=${count}`])

const listen = () => {
  const { promise, resolve } = Promise.withResolvers<Omit<Outcome, 'sent'>>()
  let told: Promise<Outcome['told']> | undefined
  const hear = (reply: Reply): void => {
    const { status, headers } = reply
    told = bodyOf(reply).then((body) => ({ status, contentType: headers['content-type'] ?? '', body }))
  }
  const over = async (...words: readonly (string | number | undefined)[]): Promise<void> => {
    const heard = await told
    resolve({ ended: words.filter((word) => word !== undefined).join(' '), ...(heard && { told: heard }) })
  }
  const listener: ReplyListener = {
    started: hear,
    finished: ({ end, tokensIn, tokensOut, failure }) =>
      void over(end, ...tokens('in', tokensIn), ...tokens('out', tokensOut), failure?.class, failure?.message),
    failed(failure, rejected) {
      if (rejected) hear(rejected)
      void over('failed', failure.class, failure.status, failure.message)
    },
    refused: ({ code, message }) => void over('refused', code, message),
    left: () => void over('left'),
  }
  return { listener, over: promise }
}

/** One exchange as it runs: through the gateway, with the engine's bytes coming in these pieces. */
export const play = async (
  pair: Pair,
  ask: unknown,
  answer: Omit<Answer, 'body'>,
  pieces: readonly Uint8Array[],
): Promise<Outcome> => {
  const exchange: Exchange = exchangeOf(paths[pair.client], ask)
  const { id } = exchange.job
  let now = arrivedAt
  let sent: UpstreamSend | undefined
  const left = [...pieces]
  const gateway = gatewayWith(new Map([[id, exchange]]), adapterOf(pair.node), {
    upstream: {
      async send(request) {
        sent = request
        now += firstByteMs
        const headers = { 'content-type': answer.contentType }
        return { status: answer.status, headers, read: async () => left.shift(), close() {} }
      },
      close() {},
      stats: () => ({ open: 0, idle: 0 }),
    },
    clock: { now: () => now, setTimeout: () => undefined, clearTimeout() {} },
  })
  const node = nodeOf('openai', { kind: nodes[pair.node].kind })
  const { listener, over } = listen()
  gateway.forward(
    { request: id, attempt: 1, node, model: 'node-model', contextTokens: 8_192 },
    listener,
    new AbortController().signal,
  )
  const outcome = await over
  if (!sent) throw new Error(outcome.ended)
  return { sent: { path: sent.url.slice(node.url.length), body: JSON.parse(text(sent.body)) }, ...outcome }
}

/** The pieces in which an engine sends an answer: its events or lines. */
export const records = ({ body }: Answer): readonly Uint8Array[] =>
  text(body)
    .split(/(?<=\n\n|\}\n)(?!\n)/)
    .map(encode)

/** One member a line, and one message or tool. */
const pretty = (value: unknown): string => {
  const rows = Object.entries(value as object).map(([name, member]) => {
    const isList = Array.isArray(member) && typeof member[0] === 'object'
    const shown = isList
      ? `[\n${member.map((entry) => `  ${JSON.stringify(entry)}`).join(',\n')}\n ]`
      : JSON.stringify(member)
    return ` ${JSON.stringify(name)}: ${shown}`
  })
  return `{\n${rows.join(',\n')}\n}`
}

export const writeOutcome = ({ sent, told, ended }: Outcome): readonly Section[] => [
  { head: `sent ${sent.path}`, body: pretty(sent.body) },
  ...(told ? [{ head: `told ${told.status} ${told.contentType}`, body: told.body }] : []),
  { head: 'ended', body: ended },
]
