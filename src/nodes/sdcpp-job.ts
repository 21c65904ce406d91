import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { followJob, parse } from './follow-job'
import { maybe } from './schema'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from './upstream'

const Job = Type.Object({
  status: Type.String(),
  result: maybe(Type.Unknown()),
  error: maybe(Type.Unknown()),
})

const jobs = {
  url: (submitted: string, id: string): string =>
    `${submitted.slice(0, submitted.lastIndexOf('/'))}/jobs/${encodeURIComponent(id)}`,
  cancel: { method: 'POST', path: '/cancel' },
} as const

const followPicture = followJob({ ...jobs, firstPollMs: 400, lastPollMs: 400 })
const followVideo = followJob({ ...jobs, firstPollMs: 400, lastPollMs: 5_000 })

/** An answer that is here already. */
const whole = (status: number, body: unknown): UpstreamReply => {
  let rest: Uint8Array | undefined = Buffer.from(JSON.stringify(body))
  return {
    status,
    headers: { 'content-type': 'application/json' },
    contentLength: rest.length,
    read: async () => {
      const piece = rest
      rest = undefined
      return piece
    },
    close: () => {},
  }
}

/** Waits for the pictures: on its other endpoints the server would go on drawing for a client that has left. */
const draw = async (request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply> => {
  const reply = await followPicture(request, upstream)
  if (reply.status !== 200) return reply
  let last: unknown
  for (let line = await reply.read(); line; line = await reply.read()) last = parse(line)
  const state = Value.Check(Job, last) ? last : { status: 'without an answer' }
  if (state.status === 'completed') return whole(200, state.result)
  return whole(500, { error: state.error ?? `the job was ${state.status}` })
}

/** Pictures are waited for, a video is followed while its client asks how it stands; anything else is one call. */
export const sendToSd = (request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply> => {
  if (request.url.endsWith('/img_gen')) return draw(request, upstream)
  return request.url.endsWith('/vid_gen') ? followVideo(request, upstream) : upstream.send(request)
}
