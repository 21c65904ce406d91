import type { NodeKind } from '../domain/node'
import type { NodeAdapter } from './adapter'
import { createLlamacpp } from './llamacpp'
import { createOllama } from './ollama'
import { openai } from './openai'

/** Every kind of node. One of each serves the whole process: what they remember is keyed by server. */
export const adapters: Readonly<Record<NodeKind, NodeAdapter>> = {
  ollama: createOllama(),
  llamacpp: createLlamacpp(),
  openai,
}

export const adapterFor = (kind: NodeKind): NodeAdapter => adapters[kind]
