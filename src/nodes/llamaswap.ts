import { sameModel } from '../domain/job'
import type { NodeDescription, NodeReport } from '../domain/node'
import { type LoadOptions, NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { errorText } from './error-text'
import type { NodeHttp } from './http'
import { Listed, residentOf, Running, storedOf, Version } from './llamaswap-wire'
import { peek, shaped } from './peek'
import { known } from './schema'
import { until } from './until'

/** How often `/running` is asked while a model comes or goes. */
const CHANGE_POLL_MS = 250

/** An engine that lost a connection without having worked on its request says so within this, in ms. */
const STALE_WITHIN_MS = 500

/**
 * llama-swap: starts and stops one process per model. Everything under `/upstream` and a request for any model starts
 * that model, which may stop others, so a poll reads nothing but its own lists. (`GET /unload` is a command too.)
 */
export const llamaswap: NodeAdapter = {
  kind: 'llamaswap',
  native: ['openai'],
  lingersAfterCancel: false,

  async fingerprint(url, http, signal) {
    const running = await peek(url, '/running', http, signal)
    if (running?.headers.has('x-fleet-instance') || !shaped(Running, running)) return undefined
    const version = shaped(Version, await peek(url, '/api/version', http, signal))?.version
    return { kind: 'llamaswap', url: rootOf(url), ...(version && { version }) }
  },

  async report(node, http, signal): Promise<NodeReport> {
    const [listed, { running }, version] = await Promise.all([
      http.json(Listed, endpoint(node.url, '/v1/models'), { node, signal }),
      http.json(Running, endpoint(node.url, '/running'), { node, signal }),
      versionOf(node, http, signal),
    ])
    return known({
      version,
      models: storedOf(listed),
      resident: residentOf(running ?? [], listed),
      canLoad: true,
      canUnload: true,
      loadsOnRequest: true,
    })
  },

  async load(node, model, { evicts }: LoadOptions, http, signal) {
    await Promise.all(evicts.map((evicted) => unload(node, evicted, http, signal)))
    await start(node, model, http, signal)
    const isReady = async (): Promise<boolean> => {
      const state = await stateOf(node, model, http, signal)
      if (state === 'ready') return true
      if (state !== 'starting') throw fault(`${node.name} stopped ${model} again while it was loading`)
      return false
    }
    await until(`${node.name} to load ${model}`, isReady, CHANGE_POLL_MS, signal)
  },

  unload: (node, model, http, signal) => unload(node, model, http, signal),

  async send(request, upstream) {
    const sentAt = performance.now()
    const reply = await upstream.send(request)
    const elapsedMs = performance.now() - sentAt
    if (reply.status !== 502 || reply.contentLength !== 0 || elapsedMs > STALE_WITHIN_MS) return reply
    reply.close()
    throw lostConnection(elapsedMs)
  },
}

/** Versions before 160 or so have no path for it. */
const versionOf = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<string | undefined> => {
  try {
    return (await http.json(Version, endpoint(node.url, '/api/version'), { node, signal })).version
  } catch (error) {
    if (error instanceof NodeFault && (error.failure.status === 404 || error.failure.class === 'bad_content'))
      return undefined
    throw error
  }
}

/** Asks the model's own server how it is: llama-swap starts it for that and answers when it has. */
const start = async (node: NodeDescription, model: string, http: NodeHttp, signal: AbortSignal): Promise<void> => {
  const url = endpoint(node.url, `/upstream/${inPath(model)}/health`)
  const { status, text } = await http.raw(url, { node, signal, timeoutMs: Number.POSITIVE_INFINITY })
  // A server without such a path says 404, and runs.
  const isRunning = status < 400 || (await stateOf(node, model, http, signal)) === 'ready'
  if (isRunning) return
  const said = errorText(text)
  throw fault(`${node.name} could not load ${model}: it answered ${status}${said && `: ${said}`}`, status)
}

const unload = async (node: NodeDescription, model: string, http: NodeHttp, signal: AbortSignal): Promise<void> => {
  const url = endpoint(node.url, `/api/models/unload/${inPath(model)}`)
  const { status, text } = await http.raw(url, { method: 'POST', node, signal })
  if (status >= 400) throw fault(`${node.name} could not unload ${model}: ${status} ${errorText(text)}`, status)
  const isGone = async (): Promise<boolean> => {
    const state = await stateOf(node, model, http, signal)
    return state === undefined || state === 'stopped' || state === 'shutdown'
  }
  await until(`${model} to leave the memory of ${node.name}`, isGone, CHANGE_POLL_MS, signal)
}

const stateOf = async (
  node: NodeDescription,
  model: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const { running } = await http.json(Running, endpoint(node.url, '/running'), { node, signal })
  return running?.find((process) => sameModel(process.model, model))?.state ?? undefined
}

/** Names may hold slashes, which llama-swap reads as part of the name. */
const inPath = (model: string): string => model.split('/').map(encodeURIComponent).join('/')

/**
 * llama-swap keeps connections to its engines, and a llama-server hangs up after each stream. Who comes at that moment gets an
 * empty 502: it never reached the engine, and neither of the two is at fault.
 */
const lostConnection = (elapsedMs: number): NodeFault => {
  const message = 'llama-swap lost its connection to the engine before the answer began'
  return new NodeFault({ class: 'reset', message, status: 502, bytes: 0, elapsedMs, stale: true })
}

const fault = (message: string, status?: number): NodeFault =>
  new NodeFault({ class: 'status', message, bytes: 0, elapsedMs: 0, ...(status && { status }) })
