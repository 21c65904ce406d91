/** What is asked about a video of the node that made it. */
import type { Job } from '../domain/job'
import { encode } from './bytes'
import type { Arrival } from './dialect'
import type { Exchange, NodeDialect, ReplyTransform, UpstreamRequest } from './exchange'
import { gathered } from './gathered'
import { isObject } from './json/values'
import { mediaJob } from './media'
import { commonOf } from './openai-side'
import { relayBytes } from './relay/bytes'

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

/** `DELETE /v1/videos/ID` of a node that keeps what it made. */
export const videoDeletion = (arrival: Arrival, video: VideoAtNode): Exchange => ({
  ...commonOf(jobOf('openai.video_deletion', arrival, video)),
  request: () => bare('DELETE', `/v1/videos/${encodeURIComponent(video.id)}`, 'openai'),
  reply: () => gathered('application/json', () => ({ body: encode('{}') })),
})
