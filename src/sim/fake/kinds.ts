import type { NodeKind } from '../../domain/node'
import type { FakeKind } from './options'

const KINDS: Readonly<Record<FakeKind, NodeKind>> = {
  ollama: 'ollama',
  lmstudio: 'lmstudio',
  'lmstudio-v0': 'lmstudio',
  llamaswap: 'llamaswap',
  llamacpp: 'llamacpp',
  'llamacpp-router': 'llamacpp',
  vllm: 'vllm',
  openai: 'openai',
}

/** What a router must be told that the fake is. */
export const nodeKindOf = (kind: FakeKind): NodeKind => KINDS[kind]
