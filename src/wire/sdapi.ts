/** `POST /sdapi/v1/txt2img` and `img2img`, as clients of A1111 send them, on any kind of node that draws. */
import { encode } from './bytes'
import type { Arrival, InferenceRoute } from './dialect'
import type { Exchange, UpstreamRequest } from './exchange'
import { gathered } from './gathered'
import type { ImageJob } from './image-job'
import { imagesOf, toOpenAiImages, withoutPrefix } from './image-job'
import { askForImages, noPicture } from './images'
import type { Json } from './json/values'
import { arrayAt, compact, invalid, numberAt, objectAt, parseBody, stringAt } from './json/values'
import { mediaJob } from './media'
import { writeForm } from './multipart'
import { commonOf } from './openai-side'
import { upstreamRequest } from './upstream'

type What = 'txt2img' | 'img2img'

const imageOf = (body: Json, what: What): ImageJob => {
  const [initial] = arrayAt(body, 'init_images')
  if (what === 'img2img' && typeof initial !== 'string')
    throw invalid('"init_images" is missing or empty.', 'init_images')
  const mask = stringAt(body, 'mask')
  return compact({
    prompt: stringAt(body, 'prompt') ?? '',
    negative: stringAt(body, 'negative_prompt'),
    width: numberAt(body, 'width'),
    height: numberAt(body, 'height'),
    count: (numberAt(body, 'batch_size') ?? 1) * (numberAt(body, 'n_iter') ?? 1),
    seed: numberAt(body, 'seed'),
    steps: numberAt(body, 'steps'),
    guidance: numberAt(body, 'cfg_scale'),
    sampler: stringAt(body, 'sampler_name'),
    initial: what === 'img2img' ? withoutPrefix(String(initial)) : undefined,
    mask: mask === undefined ? undefined : withoutPrefix(mask),
    strength: numberAt(body, 'denoising_strength'),
  }) as unknown as ImageJob
}

/** Whatever picture it is, engines look into the bytes. */
const asEdit = (image: ImageJob, model: string, request: string): UpstreamRequest => {
  const boundary = `fleet-${request}`
  const fields = Object.entries(toOpenAiImages(image, model)).map(([name, value]) => ({
    name,
    content: encode(String(value)),
  }))
  const file = { name: 'image', filename: 'image.png', contentType: 'image/png' }
  const initial = { ...file, content: Buffer.from(image.initial ?? '', 'base64') }
  const mask = image.mask === undefined ? [] : [{ ...file, name: 'mask', content: Buffer.from(image.mask, 'base64') }]
  return {
    method: 'POST',
    path: '/v1/images/edits',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, accept: 'application/json' },
    body: writeForm(boundary, [...fields, initial, ...mask]),
    dialect: 'openai',
    stream: false,
  }
}

const decode = (what: What, arrival: Arrival): Exchange => {
  const body = parseBody(arrival.body)
  const image = imageOf(body, what)
  const model = stringAt(objectAt(body, 'override_settings') ?? {}, 'sd_model_checkpoint')
  const job = mediaJob(arrival, { operation: `sdapi.${what}`, needs: ['image'], model, stream: false })
  const { init_images: _pictures, ...parameters } = body
  return {
    ...commonOf(job),
    request(target) {
      const asked = askForImages(image, target, body)
      if (asked) return asked
      if (image.initial !== undefined) return asEdit(image, target.model, job.id)
      return upstreamRequest('openai', '/v1/images/generations', toOpenAiImages(image, target.model), false)
    },
    reply: (request) =>
      gathered('application/json; charset=utf-8', (json, bytes) => {
        const images = imagesOf(json)
        if (images.length === 0) return noPicture
        if (request.dialect === 'sdapi') return { body: bytes }
        return { body: encode(JSON.stringify({ images, parameters, info: '{}' })) }
      }),
  }
}

export const sdapiRoutes: readonly InferenceRoute[] = (['txt2img', 'img2img'] as const).map((what) => ({
  method: 'POST',
  path: `/sdapi/v1/${what}`,
  decode: (arrival) => decode(what, arrival),
}))
