/** What is asked about a video of the node that made it. */
import type { Job } from '../domain/job'
import { concat, decode, encode } from './bytes'
import type { Arrival } from './dialect'
import type { Exchange, NodeDialect, ReplyTransform, UpstreamRequest } from './exchange'
import { gathered } from './gathered'
import type { Json } from './json/values'
import { isObject } from './json/values'
import { mediaJob } from './media'
import { commonOf } from './openai-side'
import { relayBytes } from './relay/bytes'
import { type AskedVideo, videoStateOf } from './video-states'

export interface VideoAtNode {
  /** The node's own id of it. */
  readonly id: string
  /** How its node was asked for it. */
  readonly dialect: NodeDialect
  readonly model: string
}

const jobOf = (operation: string, arrival: Arrival, { model }: VideoAtNode): Job =>
  mediaJob(arrival, { operation, needs: ['video'], model, stream: false })

const bare = (method: UpstreamRequest['method'], path: string, dialect: NodeDialect): UpstreamRequest => ({
  method,
  path,
  headers: { accept: '*/*' },
  body: new Uint8Array(0),
  dialect,
  stream: false,
})

/** One word on how it stands. That it failed is an answer like any other. */
const standing = (dialect: NodeDialect, asked: AskedVideo): ReplyTransform => {
  const pieces: Uint8Array[] = []
  let state: Json | undefined
  let isOver = false
  return {
    contentType: 'application/json',
    push(chunk) {
      pieces.push(chunk)
      return undefined
    },
    end() {
      isOver = true
      state = videoStateOf(decode(concat(pieces)), dialect, asked)
      return state && encode(JSON.stringify(state))
    },
    begun: () => state !== undefined,
    complete: () => state !== undefined,
    problem: () => (isOver && !state ? { message: 'The node told nothing of the video.' } : undefined),
    usage: () => ({}),
  }
}

/** Asks once how a video stands that nobody follows. */
export const videoStanding = (arrival: Arrival, video: VideoAtNode, asked: AskedVideo): Exchange => {
  const id = encodeURIComponent(video.id)
  return {
    ...commonOf(jobOf('openai.video_status', arrival, video)),
    request: () =>
      video.dialect === 'sdcpp'
        ? bare('GET', `/sdcpp/v1/jobs/${id}`, 'sdcpp')
        : bare('GET', `/v1/videos/${id}`, 'openai'),
    reply: ({ dialect }) => standing(dialect, asked),
  }
}

/** stable-diffusion.cpp keeps the video as text within the job. */
const unpacked = (): ReplyTransform => {
  let contentType = 'video/webm'
  const inner = gathered(contentType, ({ result }) => {
    if (!isObject(result) || typeof result.b64_json !== 'string')
      return { problem: { message: 'The node answered without a video.' } }
    if (typeof result.mime_type === 'string') contentType = result.mime_type
    return { body: Buffer.from(result.b64_json, 'base64') }
  })
  return {
    ...inner,
    get contentType() {
      return contentType
    },
  }
}

/** `GET /v1/videos/ID/content`; `search` is the query as the client wrote it, with its question mark. */
export const videoContent = (arrival: Arrival, video: VideoAtNode, search: string): Exchange => {
  const id = encodeURIComponent(video.id)
  return {
    ...commonOf(jobOf('openai.video_content', arrival, video)),
    request: () =>
      video.dialect === 'sdcpp'
        ? bare('GET', `/sdcpp/v1/jobs/${id}`, 'sdcpp')
        : bare('GET', `/v1/videos/${id}/content${search}`, 'openai'),
    reply: ({ dialect }, _model, _timing, type = 'video/mp4') => (dialect === 'sdcpp' ? unpacked() : relayBytes(type)),
  }
}

/** Whatever the node says beside its 2xx, it has done as it was told. */
const agreed = (): ReplyTransform => ({
  contentType: 'application/json',
  push: () => undefined,
  end: () => undefined,
  complete: () => true,
  problem: () => undefined,
  begun: () => true,
  usage: () => ({}),
})

/** `DELETE /v1/videos/ID`; stable-diffusion.cpp keeps nothing that could be deleted, but may still be at work. */
export const videoDeletion = (arrival: Arrival, video: VideoAtNode): Exchange => {
  const id = encodeURIComponent(video.id)
  return {
    ...commonOf(jobOf('openai.video_deletion', arrival, video)),
    request: () =>
      video.dialect === 'sdcpp'
        ? bare('POST', `/sdcpp/v1/jobs/${id}/cancel`, 'sdcpp')
        : bare('DELETE', `/v1/videos/${id}`, 'openai'),
    reply: agreed,
  }
}
