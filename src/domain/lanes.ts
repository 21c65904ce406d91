import type { Capability, Lane } from './job'
import type { NodeKind } from './node'

/** Capabilities that have an endpoint of their own; everything else is asked of a chat or of a completion. */
const LANE_OF: Partial<Readonly<Record<Capability, Lane>>> = {
  embedding: 'embedding',
  rerank: 'rerank',
  transcription: 'transcription',
  speech: 'speech',
  music: 'music',
  image: 'image',
  video: 'video',
  vision: 'multimodal',
  audio: 'multimodal',
}

/** The lane of a request, by what it needs. */
export const laneOf = (needs: readonly Capability[]): Lane => {
  for (const need of needs) {
    const lane = LANE_OF[need]
    if (lane !== undefined) return lane
  }
  return 'text'
}

const TEXT: readonly Lane[] = ['text', 'embedding', 'multimodal']
const MEDIA: readonly Lane[] = ['transcription', 'speech', 'image']

/** Lanes that servers of a kind may have, whatever model they hold. */
const LANES: Readonly<Record<NodeKind, readonly Lane[]>> = {
  ollama: TEXT,
  lmstudio: TEXT,
  llamaswap: [...TEXT, 'rerank', ...MEDIA],
  llamacpp: [...TEXT, 'rerank', 'transcription'],
  vllm: [...TEXT, 'rerank', ...MEDIA, 'video'],
  sglang: [...TEXT, 'rerank'],
  koboldcpp: [...TEXT, 'rerank', ...MEDIA, 'music'],
  mlx: ['text', 'multimodal'],
  whispercpp: ['transcription'],
  sdcpp: ['image', 'video'],
  a1111: ['image'],
  openai: [...TEXT, 'rerank', ...MEDIA, 'video'],
}

/** Servers of that kind have such an endpoint, as far as anybody knows. */
export const hasLane = (kind: NodeKind, lane: Lane): boolean => LANES[kind].includes(lane)

const isTextual = (lane: Lane): boolean => lane === 'text' || lane === 'multimodal'

/** A model that is known to be for another lane only; unknown ones may be for any. */
export const isForOtherLane = (capabilities: readonly Capability[] | undefined, lane: Lane): boolean => {
  if (capabilities === undefined || capabilities.length === 0 || !isTextual(lane)) return false
  const media: readonly Lane[] = ['rerank', 'transcription', 'speech', 'music', 'image', 'video']
  return capabilities.every((capability) => media.some((one) => one === LANE_OF[capability]))
}

/** Pictures and sound: rare, large, and nobody's conversation. */
export const isMediaLane = (lane: Lane): boolean => lane !== 'embedding' && lane !== 'rerank' && !isTextual(lane)
