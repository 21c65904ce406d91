/** OpenAI's `POST /v1/images/generations`, `/edits` and `/variations`, on any kind of node that draws. */
import type { Job } from '../domain/job'
import { encode, splice } from './bytes'
import { relayChecked } from './checked'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, ReplyTransform, UpstreamRequest } from './exchange'
import { gathered } from './gathered'
import type { ImageJob } from './image-job'
import { imagesOf, toSdapi, toSdcpp } from './image-job'
import { booleanAt, compact, invalid, numberAt, parseBody, stringAt } from './json/values'
import { mediaJob } from './media'
import type { Form, Part } from './multipart'
import { fieldOf, filesOf, readForm, setField } from './multipart'
import type { Target } from './node-side'
import { commonOf } from './openai-side'
import { renamed } from './renamed'
import { upstreamRequest } from './upstream'

export const sizeOf = (size: string | undefined): Pick<ImageJob, 'width' | 'height'> => {
  if (size === undefined || size === 'auto') return {}
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []
  if (width === undefined || height === undefined) throw invalid('"size" must be like "512x512".', 'size')
  return { width: Number(width), height: Number(height) }
}

/** What the client wants, and its own bytes for a node that speaks like it. */
interface Wish {
  readonly job: Job
  readonly image: ImageJob
  own(model: string): UpstreamRequest
}

/** The node's own dialect for pictures, if it has one beside OpenAI's. */
export const askForImages = (
  image: ImageJob,
  { model, native }: Target,
  more: Parameters<typeof toSdapi>[2] = {},
): UpstreamRequest | undefined => {
  if (native.includes('sdcpp')) return upstreamRequest('sdcpp', '/sdcpp/v1/img_gen', toSdcpp(image), false)
  if (!native.includes('sdapi')) return undefined
  const { path, body } = toSdapi(image, model, more)
  return upstreamRequest('sdapi', path, body, false)
}

export const noPicture = { problem: { message: 'The node answered without a picture.' } } as const

const translated = (job: Job, { format = 'png' }: ImageJob): ReplyTransform =>
  gathered('application/json; charset=utf-8', (json) => {
    const images = imagesOf(json)
    if (images.length === 0) return noPicture
    const data = images.map((picture) => ({ b64_json: picture }))
    const answer = { created: Math.floor(job.arrivedAt / 1_000), data, output_format: format }
    return { body: encode(JSON.stringify(answer)) }
  })

const exchangeOf = ({ job, image, own }: Wish): Exchange => ({
  ...commonOf(job),
  request: (target) => askForImages(image, target) ?? own(target.model),
  reply: (request, _model, _timing, type = 'application/json') =>
    request.dialect === 'openai' ? relayChecked(type) : translated(job, image),
})

const generate = (arrival: Arrival): Exchange => {
  const body = parseBody(arrival.body)
  const prompt = stringAt(body, 'prompt')
  if (!prompt) throw invalid('"prompt" is missing or empty.', 'prompt')
  const stream = booleanAt(body, 'stream') === true
  const format = stringAt(body, 'output_format')
  const image = {
    prompt,
    count: numberAt(body, 'n') ?? 1,
    ...sizeOf(stringAt(body, 'size')),
    ...(format && { format }),
  }
  const kind = { operation: 'openai.images', needs: ['image'], model: stringAt(body, 'model'), stream } as const
  return exchangeOf({
    job: mediaJob(arrival, kind),
    image,
    own: (model) => upstreamRequest('openai', '/v1/images/generations', renamed(arrival.body, body, model), stream),
  })
}

export const base64Of = ({ body }: Form, { start, end }: Part): string =>
  Buffer.from(body.subarray(start, end)).toString('base64')

type FromPicture = 'edits' | 'variations'

/** A variation is what an image model makes of a picture without being told anything: the same call without words. */
const redraw = (what: FromPicture, arrival: Arrival): Exchange => {
  const contentType = arrival.headers.get('content-type')
  const form = readForm(arrival.body, contentType)
  const [first] = filesOf(form, 'image', 'image[]')
  const [mask] = filesOf(form, 'mask')
  const prompt = fieldOf(form, 'prompt')
  if (!first) throw invalid('"image" is missing.', 'image')
  if (!prompt && what === 'edits') throw invalid('"prompt" is missing or empty.', 'prompt')
  const stream = what === 'edits' && fieldOf(form, 'stream') === 'true'
  const image = compact({
    prompt: prompt ?? '',
    count: Number(fieldOf(form, 'n') ?? 1) || 1,
    ...sizeOf(fieldOf(form, 'size')),
    format: fieldOf(form, 'output_format'),
    initial: base64Of(form, first),
    mask: mask && base64Of(form, mask),
  }) as unknown as ImageJob
  const kind = { operation: `openai.image_${what}`, needs: ['image'], model: fieldOf(form, 'model'), stream } as const
  return exchangeOf({
    job: mediaJob(arrival, kind),
    image,
    own: (model) => ({
      method: 'POST',
      path: `/v1/images/${what}`,
      headers: { 'content-type': contentType ?? '', accept: '*/*' },
      body: splice(form.body, fieldOf(form, 'model') === model ? [] : setField(form, 'model', model)),
      dialect: 'openai',
      stream,
    }),
  })
}

export const imageRoutes: readonly InferenceRoute[] = [
  { method: 'POST', path: '/v1/images/generations', decode: generate },
  { method: 'POST', path: '/v1/images/edits', decode: (arrival) => redraw('edits', arrival) },
  { method: 'POST', path: '/v1/images/variations', decode: (arrival) => redraw('variations', arrival) },
]
