import type { NodeKind } from '../domain/node'
import type { NodeAdapter } from './adapter'
import { createLlamacpp } from './llamacpp'
import { llamaswap } from './llamaswap'
import { createLmstudio } from './lmstudio'
import { createOllama } from './ollama'
import { openai } from './openai'
import { vllm } from './vllm'

/** Every kind of node. One of each serves the whole process: what they remember is keyed by server. */
export const adapters: Readonly<Record<NodeKind, NodeAdapter>> = {
  ollama: createOllama(),
  lmstudio: createLmstudio(),
  llamaswap,
  llamacpp: createLlamacpp(),
  vllm,
  openai,
}

export const adapterFor = (kind: NodeKind): NodeAdapter => adapters[kind]
