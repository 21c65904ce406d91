import type { NodeKind } from '../domain/node'
import type { NodeAdapter } from './adapter'
import { a1111 } from './a1111'
import { sendWithVideos } from './follow-job'
import { koboldcpp } from './koboldcpp'
import { createLaneWatch } from './lane-watch'
import { createLlamacpp } from './llamacpp'
import { llamaswap } from './llamaswap'
import { createLmstudio } from './lmstudio'
import { mlx } from './mlx'
import { createOllama } from './ollama'
import { openai } from './openai'
import { sdcpp } from './sdcpp'
import { sglang } from './sglang'
import { vllm } from './vllm'
import { whispercpp } from './whispercpp'

/** One for all of them: a request may be tried on servers of several kinds. */
const watchingLanes = createLaneWatch()

/** Every kind of node. One of each serves the whole process: what they remember is keyed by server. */
export const adapters: Readonly<Record<NodeKind, NodeAdapter>> = {
  ollama: createOllama(),
  lmstudio: createLmstudio(),
  llamaswap: watchingLanes(llamaswap),
  llamacpp: watchingLanes(createLlamacpp()),
  vllm: watchingLanes({ ...vllm, send: sendWithVideos }),
  sglang,
  koboldcpp: watchingLanes(koboldcpp),
  mlx,
  whispercpp: watchingLanes(whispercpp),
  sdcpp: watchingLanes(sdcpp),
  a1111: watchingLanes(a1111),
  openai: watchingLanes(openai),
}

export const adapterFor = (kind: NodeKind): NodeAdapter => adapters[kind]
