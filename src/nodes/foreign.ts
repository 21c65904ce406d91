import { Type } from '@sinclair/typebox'
import type { Identity } from './adapter'
import { rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { peek, shaped } from './peek'
import { maybe } from './schema'

/** An identity with the name of the product, for people and for node names (`lmstudio`, `vllm`, …). */
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
const koboldcpp: Mark = async (url, http, signal) => {
  const found = shaped(KoboldVersion, await peek(url, '/api/extra/version', http, signal))
  return found && generic(url, 'koboldcpp', 'KoboldCpp', found.version)
}

const StudioV1 = Type.Object({ models: Type.Array(Type.Object({ key: Type.String() }), { minItems: 1 }) })
const StudioV0 = Type.Object({ data: Type.Array(Type.Object({ compatibility_type: Type.String() }), { minItems: 1 }) })

/** Has no version anywhere; without a single model it cannot be told from other servers. */
const lmstudio: Mark = async (url, http, signal) => {
  const isIt =
    shaped(StudioV1, await peek(url, '/api/v1/models', http, signal)) ??
    shaped(StudioV0, await peek(url, '/api/v0/models', http, signal))
  return isIt && generic(url, 'lmstudio', 'LM Studio')
}

/** Lists one model like a language server, but draws pictures. */
const stableDiffusion: Mark = async (url, http, signal) => {
  const answer = await peek(url, '/sdcpp/v1/capabilities', http, signal)
  return shaped(Type.Object({ model: Type.Unknown() }), answer) ? 'unusable' : undefined
}

const SwapRunning = Type.Object({ running: Type.Union([Type.Array(Type.Unknown()), Type.Null()]) })
const SwapVersion = Type.Object({ version: Type.String(), commit: Type.String() })

const llamaswap: Mark = async (url, http, signal) => {
  if (!shaped(SwapRunning, await peek(url, '/running', http, signal))) return undefined
  const version = shaped(SwapVersion, await peek(url, '/api/version', http, signal))?.version
  return generic(url, 'llamaswap', 'llama-swap', version)
}

const VllmVersion = Type.Object({ version: Type.String() })
const VllmModels = Type.Object({ data: Type.Array(Type.Object({ owned_by: Type.Literal('vllm') }), { minItems: 1 }) })

const vllm: Mark = async (url, http, signal) => {
  if (!shaped(VllmModels, await peek(url, '/v1/models', http, signal))) return undefined
  const version = shaped(VllmVersion, await peek(url, '/version', http, signal))
  return version && generic(url, 'vllm', 'vLLM', version.version)
}

const SglangModel = Type.Object({ model_path: Type.String() })
const SglangInfo = Type.Object({ version: maybe(Type.String()) })

/** Imitates a part of Ollama. Its `/health` generates a token, so it is not asked. */
const sglang: Mark = async (url, http, signal) => {
  const isIt =
    shaped(SglangModel, await peek(url, '/get_model_info', http, signal)) ??
    shaped(SglangModel, await peek(url, '/model_info', http, signal))
  if (!isIt) return undefined
  const info =
    shaped(SglangInfo, await peek(url, '/server_info', http, signal)) ??
    shaped(SglangInfo, await peek(url, '/get_server_info', http, signal))
  return generic(url, 'sglang', 'SGLang', info?.version)
}

/** Products that imitate another one or share its port, in the order in which they must be told apart. */
export const beforeLlamacpp: readonly Mark[] = [koboldcpp, lmstudio, stableDiffusion, llamaswap]
export const beforeOllama: readonly Mark[] = [vllm, sglang]
