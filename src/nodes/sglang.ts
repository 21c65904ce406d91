import { Type } from '@sinclair/typebox'
import type { Capability } from '../domain/job'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import { peek, shaped } from './peek'
import { known, maybe } from './schema'

const Info = Type.Object({ model_path: Type.String(), is_generation: maybe(Type.Boolean()) })
const Server = Type.Object({ version: maybe(Type.String()) })
const Models = Type.Object({
  data: Type.Array(Type.Object({ id: Type.String(), max_model_len: maybe(Type.Number()) })),
})

const TEXT: readonly Capability[] = ['chat', 'completion', 'tools', 'thinking', 'vision']
const OTHER: readonly Capability[] = ['embedding', 'rerank']

/** SGLang: one model, in memory from start to end. It imitates a part of Ollama; its `/health` generates a token. */
export const sglang: NodeAdapter = {
  kind: 'sglang',
  native: ['openai'],
  lingersAfterCancel: false,

  async fingerprint(url, http, signal) {
    const isIt =
      shaped(Info, await peek(url, '/get_model_info', http, signal)) ??
      shaped(Info, await peek(url, '/model_info', http, signal))
    if (!isIt) return undefined
    const server =
      shaped(Server, await peek(url, '/server_info', http, signal)) ??
      shaped(Server, await peek(url, '/get_server_info', http, signal))
    return known({ kind: 'sglang' as const, version: server?.version, url: rootOf(url) })
  },

  async report(node, http, signal) {
    const { data } = await http.json(Models, endpoint(node.url, '/v1/models'), { node, signal })
    const info = shaped(Info, await peek(node.url, '/get_model_info', http, signal))
    const kind = info?.is_generation
    const capabilities = typeof kind === 'boolean' ? (kind ? TEXT : OTHER) : undefined
    return {
      models: data.map(({ id, max_model_len: tokens }) => known({ name: id, maxContextTokens: tokens, capabilities })),
      resident: data.map(({ id, max_model_len: tokens }) =>
        known({ name: id, state: 'ready' as const, contextTokens: tokens }),
      ),
      canLoad: false,
      canUnload: false,
    }
  },
}
