/**
 * The node's side of every translation: how a canonical request is put to it and how its answer is read. A node that
 * speaks several dialects is asked in the first of these that it carries out well.
 */
import type { Job } from '../domain/job'
import type { ChatRequest } from './canonical'
import type { Exchange, UpstreamRequest } from './exchange'
import type { Framer } from './lines'
import { createWholeFramer } from './lines'
import { createNdjsonFramer } from './ndjson'
import { createOllamaReader } from './ollama-reader'
import { createOpenAiReader } from './openai-reader'
import type { FrameReader } from './replies'
import { createSseFramer } from './sse'
import { writeOllamaChat } from './to-ollama'
import { writeOpenAiChat } from './to-openai'
import { upstreamRequest } from './upstream'

export type Target = Parameters<Exchange['request']>[0]

/** Ollama's own `/v1` cannot set the context window, so Ollama nodes are always spoken to in their native dialect. */
export const speaksOpenAi = ({ node, native }: Target): boolean => native.includes('openai') && node.kind !== 'ollama'

/** A model that is known not to think is not asked to: Ollama refuses such a request. */
const within = (chat: ChatRequest, { capabilities }: Target): ChatRequest => {
  if (chat.reasoning?.on !== true || capabilities === undefined || capabilities.includes('thinking')) return chat
  const { reasoning: _, ...rest } = chat
  return rest
}

/** The node's chat endpoint with this request. Throws `invalid_request` for what such a node cannot do. */
export const askChat = (chat: ChatRequest, job: Job, target: Target): UpstreamRequest => {
  const { node, model, contextTokens } = target
  const request = within(chat, target)
  const { stream } = job
  if (speaksOpenAi(target)) {
    const body = writeOpenAiChat(request, { model, stream, request: job.id })
    return upstreamRequest('openai', '/v1/chat/completions', body, stream)
  }
  const body = writeOllamaChat(request, {
    model,
    stream,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(node.keepAlive !== undefined && { keepAlive: node.keepAlive }),
  })
  return upstreamRequest('ollama', '/api/chat', body, stream)
}

/** Cuts and reads the answer to `request`. */
export const readerFor = (
  { dialect, stream }: UpstreamRequest,
  job: Job,
): { readonly framer: Framer; readonly reader: FrameReader } => {
  if (dialect === 'ollama') {
    return { framer: stream ? createNdjsonFramer() : createWholeFramer(), reader: createOllamaReader(job.id) }
  }
  return { framer: stream ? createSseFramer() : createWholeFramer(), reader: createOpenAiReader(job.id) }
}
