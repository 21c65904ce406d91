import { Type } from '@sinclair/typebox'
import type { Identity } from './adapter'
import { rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { peek, shaped } from './peek'
import { maybe } from './schema'

/** An identity with the name of the product, for people and for node names (`sglang`, `koboldcpp`, …). */
export type Sighting = Identity & { readonly product: string }

/** Looks for the marks of one product. `unusable`: certainly this product, and nothing that can be routed to. */
export type Mark = (url: string, http: NodeHttp, signal: AbortSignal) => Promise<Sighting | 'unusable' | undefined>

const generic = (url: string, product: string, title: string, version?: string | null): Sighting => ({
  kind: 'openai',
  product,
  version: version ? `${title} ${version}` : title,
  url: rootOf(url),
})

const KoboldVersion = Type.Object({ result: Type.Literal('KoboldCpp'), version: maybe(Type.String()) })

/** Imitates Ollama's lists, so it is looked for before Ollama. */
export const koboldcpp: Mark = async (url, http, signal) => {
  const found = shaped(KoboldVersion, await peek(url, '/api/extra/version', http, signal))
  return found && generic(url, 'koboldcpp', 'KoboldCpp', found.version)
}

/** Lists one model like a language server, but draws pictures. */
export const stableDiffusion: Mark = async (url, http, signal) => {
  const answer = await peek(url, '/sdcpp/v1/capabilities', http, signal)
  return shaped(Type.Object({ model: Type.Unknown() }), answer) ? 'unusable' : undefined
}

const SglangModel = Type.Object({ model_path: Type.String() })
const SglangInfo = Type.Object({ version: maybe(Type.String()) })

/** Imitates a part of Ollama. Its `/health` generates a token, so it is not asked. */
export const sglang: Mark = async (url, http, signal) => {
  const isIt =
    shaped(SglangModel, await peek(url, '/get_model_info', http, signal)) ??
    shaped(SglangModel, await peek(url, '/model_info', http, signal))
  if (!isIt) return undefined
  const info =
    shaped(SglangInfo, await peek(url, '/server_info', http, signal)) ??
    shaped(SglangInfo, await peek(url, '/get_server_info', http, signal))
  return generic(url, 'sglang', 'SGLang', info?.version)
}
