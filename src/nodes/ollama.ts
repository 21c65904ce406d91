import { Type } from '@sinclair/typebox'
import { sameModel } from '../domain/job'
import type { NodeDescription } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { createTraits } from './ollama-traits'
import { isLocal, Running, Tags, toResident, toStored, Version } from './ollama-wire'
import { peek, shaped } from './peek'
import { until } from './until'

/** How often `/api/ps` is asked while a model leaves. */
const LEAVING_POLL_MS = 200

const Done = Type.Object({ done: Type.Optional(Type.Boolean()) })

/** Ollama, any version. Its own `/api` is the dialect: its `/v1` cannot set the context window. */
export const createOllama = (): NodeAdapter => {
  const traits = createTraits()

  return {
    kind: 'ollama',
    native: ['ollama'],
    lingersAfterCancel: true,

    async fingerprint(url, http, signal) {
      const [root, version, running] = await Promise.all([
        peek(url, '/', http, signal),
        peek(url, '/api/version', http, signal),
        peek(url, '/api/ps', http, signal),
      ])
      // Others say "Ollama is running" too; this router does, and marks its answers.
      const fleet = root?.headers.has('x-fleet-instance')
      const said = shaped(Version, version)
      if (fleet || !said || !root?.text.includes('Ollama is running') || !shaped(Running, running)) return undefined
      return { kind: 'ollama', version: said.version, url: rootOf(url) }
    },

    async report(node, http, signal) {
      const call = { node, signal }
      const [{ version }, tags, running] = await Promise.all([
        http.json(Version, endpoint(node.url, '/api/version'), call),
        http.json(Tags, endpoint(node.url, '/api/tags'), call),
        http.json(Running, endpoint(node.url, '/api/ps'), call),
      ])
      const local = (tags.models ?? []).filter(isLocal)
      await traits.learn(node, local, http, signal)
      return {
        version,
        models: local.map((tag) => toStored(tag, traits.of(node, tag))),
        resident: (running.models ?? []).filter(isLocal).map(toResident),
        canLoad: true,
        canUnload: true,
      }
    },

    async load(node, model, { contextTokens, evicts }, http, signal) {
      await Promise.all(evicts.map((evicted) => unload(node, evicted, http, signal)))
      await touch(
        node,
        { model, ...keepAliveOf(node), ...(contextTokens && { options: { num_ctx: contextTokens } }) },
        http,
        signal,
      )
    },

    unload: (node, model, http, signal) => unload(node, model, http, signal),
  }
}

/** Go wants a unit ("30m"); bare seconds ("-1", "600") must be a number. */
const keepAliveOf = ({ keepAlive }: NodeDescription): { keep_alive?: string | number } => {
  if (keepAlive === undefined) return {}
  return { keep_alive: /^-?\d+$/.test(keepAlive.trim()) ? Number(keepAlive) : keepAlive }
}

const unload = async (node: NodeDescription, model: string, http: NodeHttp, signal: AbortSignal): Promise<void> => {
  try {
    await touch(node, { model, keep_alive: 0 }, http, signal)
  } catch (error) {
    if (!hasStatus(error, 404)) throw error
  }
  const isGone = async (): Promise<boolean> => {
    const running = await http.json(Running, endpoint(node.url, '/api/ps'), { node, signal })
    return !running.models?.some(({ name }) => sameModel(name, model))
  }
  await until(`${model} to leave the memory of ${node.name}`, isGone, LEAVING_POLL_MS, signal)
}

interface Touch {
  readonly model: string
  readonly keep_alive?: string | number
  readonly options?: { readonly num_ctx: number }
}

/** A request without input: it only loads, or with `keep_alive: 0` unloads. Models that only embed refuse `generate`. */
const touch = async (node: NodeDescription, body: Touch, http: NodeHttp, signal: AbortSignal): Promise<void> => {
  const call = { method: 'POST', node, signal, timeoutMs: Number.POSITIVE_INFINITY } as const
  try {
    await http.json(Done, endpoint(node.url, '/api/generate'), { ...call, body: { ...body, stream: false } })
  } catch (error) {
    if (!hasStatus(error, 400)) throw error
    await http.json(Done, endpoint(node.url, '/api/embed'), { ...call, body: { ...body, input: [] } })
  }
}

const hasStatus = (error: unknown, status: number): boolean =>
  error instanceof NodeFault && error.failure.status === status
