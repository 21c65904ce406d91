/** One wish for pictures, between the three ways in which clients and nodes write it. */
import type { Json } from './json/values'
import { compact, isObject } from './json/values'

/** Pictures are base64 without a `data:` prefix. */
export interface ImageJob {
  readonly prompt: string
  readonly negative?: string
  readonly width?: number
  readonly height?: number
  readonly count: number
  readonly seed?: number
  readonly steps?: number
  readonly guidance?: number
  readonly sampler?: string
  readonly format?: string
  readonly initial?: string
  readonly mask?: string
  /** 0 to 1: how far from the initial picture. */
  readonly strength?: number
}

/** `txt2img` or `img2img` of an A1111. Members that only such a client can write come along in `more`. */
export const toSdapi = (
  job: ImageJob,
  model: string,
  more: Json = {},
): { readonly path: string; readonly body: Json } => {
  const settings = isObject(more.override_settings) ? more.override_settings : {}
  const body = compact({
    ...more,
    prompt: job.prompt,
    negative_prompt: job.negative,
    width: job.width,
    height: job.height,
    batch_size: more.batch_size ?? job.count,
    seed: job.seed,
    steps: job.steps,
    cfg_scale: job.guidance,
    sampler_name: job.sampler,
    init_images: job.initial === undefined ? undefined : [job.initial],
    mask: job.mask,
    denoising_strength: job.strength,
    override_settings: { ...settings, sd_model_checkpoint: model },
    // Another request would otherwise load the model of before first.
    override_settings_restore_afterwards: false,
  })
  return { path: job.initial === undefined ? '/sdapi/v1/txt2img' : '/sdapi/v1/img2img', body }
}

/** A job of stable-diffusion.cpp. */
export const toSdcpp = (job: ImageJob): Json => {
  const guidance = job.guidance === undefined ? undefined : { txt_cfg: job.guidance }
  const sampling = compact({ sample_steps: job.steps, sample_method: job.sampler, guidance })
  return compact({
    prompt: job.prompt,
    negative_prompt: job.negative,
    width: job.width,
    height: job.height,
    batch_count: job.count,
    seed: job.seed,
    sample_params: Object.keys(sampling).length > 0 ? sampling : undefined,
    init_image: job.initial,
    mask_image: job.mask,
    strength: job.strength,
    output_format: job.format,
  })
}

/** `POST /v1/images/generations`. */
export const toOpenAiImages = (job: ImageJob, model: string): Json =>
  compact({
    model,
    prompt: job.prompt,
    n: job.count,
    size: job.width === undefined || job.height === undefined ? undefined : `${job.width}x${job.height}`,
    response_format: 'b64_json',
  })

const texts = (entries: unknown, member?: string): readonly string[] => {
  if (!Array.isArray(entries)) return []
  const values = member === undefined ? entries : entries.map((entry) => (isObject(entry) ? entry[member] : undefined))
  return values.filter((value): value is string => typeof value === 'string' && value !== '')
}

/** The pictures of an answer, whoever gave it. */
export const imagesOf = (json: Json): readonly string[] => {
  const found = [texts(json.data, 'b64_json'), texts(json.images), texts(json.images, 'b64_json')]
  return found.find((images) => images.length > 0) ?? []
}

const dataUrl = /^data:[^,]*,/i

export const withoutPrefix = (picture: string): string => picture.replace(dataUrl, '')
