import { type Static, Type } from '@sinclair/typebox'
import type { NodeDescription, ResidentModel, StoredModel } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { sendWithVideos } from './follow-job'
import type { NodeHttp } from './http'
import { peek, shaped } from './peek'
import { known, maybe } from './schema'

const Entry = Type.Object({
  id: Type.String(),
  owned_by: maybe(Type.String()),
  max_model_len: maybe(Type.Number()),
  context_length: maybe(Type.Number()),
  max_context_length: maybe(Type.Number()),
  meta: maybe(Type.Object({ n_ctx: maybe(Type.Number()) })),
})
type Entry = Static<typeof Entry>

/** The list of models as OpenAI shapes it. */
export const ModelList = Type.Object({ data: Type.Union([Type.Array(Entry), Type.Null()]) })
type ModelList = Static<typeof ModelList>

/** Any server that lists models and answers `/v1/chat/completions`. What it does not say comes from the configuration. */
export const openai: NodeAdapter = {
  kind: 'openai',
  native: ['openai'],
  // Nothing is known about the engine, and several of these finish the prompt before they notice.
  lingersAfterCancel: true,
  send: sendWithVideos,

  async fingerprint(url, http, signal) {
    for (const path of ['/v1/models', '/models']) {
      const answer = await peek(url, path, http, signal)
      if (answer?.headers.has('x-fleet-instance')) return undefined
      if (shaped(ModelList, answer)) return { kind: 'openai', url: rootOf(url) }
    }
    return undefined
  },

  async report(node, http, signal) {
    const entries = (await list(node, http, signal)).data ?? []
    return {
      models: entries.map(toStored),
      resident: entries.map(toResident),
      canLoad: false,
      canUnload: false,
    }
  },
}

/** `/v1/models`, or `/models` where the server's root is already its API (`404`, or a web page for unknown paths). */
const list = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<ModelList> => {
  try {
    return await http.json(ModelList, endpoint(node.url, '/v1/models'), { node, signal })
  } catch (error) {
    if (!(error instanceof NodeFault) || !isElsewhere(error)) throw error
    // The first fault is the one to show when neither answers: it names the usual address.
    return http.json(ModelList, endpoint(node.url, '/models'), { node, signal }).catch(() => Promise.reject(error))
  }
}

const isElsewhere = ({ failure }: NodeFault): boolean =>
  failure.class === 'bad_content' || failure.status === 404 || failure.status === 405

const contextOf = (entry: Entry): number | undefined => {
  const told = [entry.max_model_len, entry.context_length, entry.meta?.n_ctx, entry.max_context_length]
  return told.find((tokens): tokens is number => typeof tokens === 'number' && tokens > 0)
}

const toStored = (entry: Entry): StoredModel => known({ name: entry.id, maxContextTokens: contextOf(entry) })

/** Listed means ready: such a server serves what it lists, and there is nothing that could tell otherwise. */
const toResident = (entry: Entry): ResidentModel =>
  known({ name: entry.id, state: 'ready' as const, contextTokens: contextOf(entry) })
