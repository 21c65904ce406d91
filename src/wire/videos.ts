/**
 * OpenAI's `POST /v1/videos`: a job that the node works on for minutes after it has answered. So the exchange does not
 * end with that answer: what goes out is one JSON object a line, each how the job stands, the first as soon as it exists.
 */
import { splice } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, UpstreamRequest } from './exchange'
import { base64Of, sizeOf } from './images'
import type { Json } from './json/values'
import { compact, invalid, parseBody, stringAt } from './json/values'
import { mediaJob } from './media'
import { fieldOf, filesOf, readForm, setField } from './multipart'
import { commonOf } from './openai-side'
import { renamed } from './renamed'
import { upstreamRequest } from './upstream'
import { videoStates } from './video-states'

/** Frames a second that stable-diffusion.cpp is told wherever a length is asked for: its frames are counted, not timed. */
const FRAMES_PER_SECOND = 16

/** One wish for a video, whichever way the client wrote it. */
interface Wish {
  readonly model: string | undefined
  readonly prompt: string | undefined
  readonly size: string | undefined
  readonly seconds: string | undefined
  /** The picture that it begins with, base64. */
  readonly initial?: string
  /** The client's own body, under the node's name for the model. */
  own(model: string): Uint8Array
}

const inForm = ({ body, headers }: Arrival): Wish => {
  const form = readForm(body, headers.get('content-type'))
  const [initial] = filesOf(form, 'input_reference')
  return {
    model: fieldOf(form, 'model'),
    prompt: fieldOf(form, 'prompt'),
    size: fieldOf(form, 'size'),
    seconds: fieldOf(form, 'seconds'),
    ...(initial && { initial: base64Of(form, initial) }),
    own: (model) => splice(body, fieldOf(form, 'model') === model ? [] : setField(form, 'model', model)),
  }
}

/** SDKs send the seconds as text, people as a number. */
const inJson = ({ body }: Arrival): Wish => {
  const json = parseBody(body)
  const { seconds } = json
  return {
    model: stringAt(json, 'model'),
    prompt: stringAt(json, 'prompt'),
    size: stringAt(json, 'size'),
    seconds: typeof seconds === 'number' ? String(seconds) : stringAt(json, 'seconds'),
    own: (model) => renamed(body, json, model),
  }
}

const secondsOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (seconds > 0 && seconds <= 3_600) return seconds
  throw invalid('"seconds" must be a number above 0, at most 3600.', 'seconds')
}

/** A job of stable-diffusion.cpp, which makes 4n + 1 frames. */
const toVidGen = ({ prompt, size, seconds, initial }: Wish): Json => {
  const length = secondsOf(seconds)
  const frames = length === undefined ? undefined : Math.round((length * FRAMES_PER_SECOND) / 4) * 4 + 1
  return compact({
    prompt,
    ...sizeOf(size),
    video_frames: frames,
    fps: frames === undefined ? undefined : FRAMES_PER_SECOND,
    init_image: initial,
  })
}

const create = (arrival: Arrival): Exchange => {
  const told = arrival.headers.get('content-type') ?? ''
  const isForm = /^multipart\//i.test(told)
  const wish = isForm ? inForm(arrival) : inJson(arrival)
  if (!wish.prompt) throw invalid('"prompt" is missing or empty.', 'prompt')
  const forSd = toVidGen(wish)
  const { model } = wish
  const job = mediaJob(arrival, { operation: 'openai.videos', needs: ['video'], model, stream: false })
  return {
    ...commonOf(job),
    flows: true,
    request: (target): UpstreamRequest =>
      target.native.includes('sdcpp')
        ? upstreamRequest('sdcpp', '/sdcpp/v1/vid_gen', forSd, false)
        : {
            method: 'POST',
            path: '/v1/videos',
            headers: { 'content-type': isForm ? told : 'application/json', accept: 'application/json' },
            body: wish.own(target.model),
            dialect: 'openai',
            stream: false,
          },
    reply: ({ dialect }) =>
      videoStates(dialect, { model: job.asked, ...compact({ size: wish.size, seconds: wish.seconds }) }),
  }
}

/** Answered by its own route, which keeps the job's id. */
export const videoRoute: InferenceRoute = { method: 'POST', path: '/v1/videos', decode: create }
