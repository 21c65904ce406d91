/** How a video stands, told again and again by a node; OpenAI's object, one a line, under the node's own id. */
import { encode } from './bytes'
import type { NodeDialect, ReplyTransform } from './exchange'
import type { Json } from './json/values'
import { compact, isObject, parseReply } from './json/values'
import type { Frame } from './lines'
import { createNdjsonFramer } from './ndjson'
import { errorOf } from './replies'

/** What the client asked for, and finds again in every answer. */
export interface AskedVideo {
  readonly model: string
  readonly size?: string
  readonly seconds?: string
}

const OVER: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled', 'expired'])

/** Nothing more becomes of it. */
export const isVideoOver = ({ status }: Json): boolean => OVER.has(status)

/** What OpenAI's clients look at; not the prompt, which nodes repeat and nothing here keeps. */
const MEMBERS = [
  ...['id', 'object', 'status', 'progress', 'created_at', 'completed_at', 'expires_at', 'size', 'seconds', 'quality'],
  ...['remixed_from_video_id', 'error'],
]

const fromOpenAi = (json: Json, { model }: AskedVideo): Json => ({
  object: 'video',
  status: 'queued',
  ...Object.fromEntries(MEMBERS.filter((name) => name in json).map((name) => [name, json[name]])),
  model,
})

/** The words of stable-diffusion.cpp for states that OpenAI's clients know by others. */
const statusOfSd: Readonly<Record<string, string>> = { generating: 'in_progress', cancelled: 'failed' }

/** A job of stable-diffusion.cpp, its picture left out. */
const fromSd = ({ id, status, created, completed, error }: Json, asked: AskedVideo): Json =>
  compact({
    id,
    object: 'video',
    ...asked,
    status: typeof status === 'string' ? (statusOfSd[status] ?? status) : 'queued',
    progress: status === 'completed' ? 100 : 0,
    created_at: created,
    completed_at: completed ?? undefined,
    error: isObject(error) ? error : null,
  })

/** How a node says that a video stands; undefined when it says nothing of one. */
export const videoStateOf = (data: string, dialect: NodeDialect, asked: AskedVideo): Json | undefined => {
  const json = parseReply(data)
  if (typeof json?.id !== 'string') return undefined
  return (dialect === 'sdcpp' ? fromSd : fromOpenAi)(json, asked)
}

/** Reads what the node says of the job until it is over. */
export const videoStates = (dialect: NodeDialect, asked: AskedVideo): ReplyTransform => {
  const framer = createNdjsonFramer()
  let last: Json | undefined
  let isOdd = false

  const write = (frames: readonly Frame[]): Uint8Array | undefined => {
    const lines = frames.map(({ data }) => {
      const state = videoStateOf(data, dialect, asked)
      if (state) last = state
      else isOdd = true
      return state ? `${JSON.stringify(state)}\n` : ''
    })
    const text = lines.join('')
    return text === '' ? undefined : encode(text)
  }

  return {
    contentType: 'application/x-ndjson',
    push: (chunk) => write(framer.push(chunk)),
    end: () => write(framer.end()),
    begun: () => last !== undefined,
    complete: () => last !== undefined && isVideoOver(last),
    problem() {
      if (isOdd) return { message: 'The node told nothing of the video.' }
      return last?.status === 'failed' ? (errorOf(last) ?? { message: 'The video failed.' }) : undefined
    },
    usage: () => ({}),
  }
}
