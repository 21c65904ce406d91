/** `GET /api/tags`, `GET /api/ps` and `POST /api/show`, as strictly as typed clients read them. */
import type { Capability } from '../domain/job'
import type { ModelView } from '../ports/fleet'
import type { Json } from './json/values'
import { compact, isObject } from './json/values'
import { capabilitiesOf, loadedContext, maxContext, placesOf } from './models'
import { hashText } from './session'
import { rfc3339 } from './time'

const bytesPerGb = 1e9

/** Stands for "never" where a date is demanded: a hundred years. */
const foreverMs = 100 * 365 * 86_400_000

const unknownTime = '1970-01-01T00:00:00Z'

/** At most six fractional digits: parsers of common clients take no more. */
const shortTime = (time: string): string => time.replace(/(\.\d{6})\d+/, '$1')

const bytes = (gb: number | undefined): number => Math.round((gb ?? 0) * bytesPerGb)

/** Clients cut digests to their first twelve digits and crash on shorter ones, so every model has one. */
const digestOf = (model: ModelView): string =>
  placesOf(model)
    .find(({ stored }) => stored.digest)
    ?.stored.digest?.replace(/^sha256:/, '') ?? hashText(model.key).repeat(4)

const storedDetails = (model: ModelView): Json =>
  placesOf(model).find(({ stored }) => stored.details)?.stored.details ?? {}

const words = (value: unknown): string => (typeof value === 'string' ? value : '')

const familiesOf = ({ families, family }: Json): string[] => {
  if (Array.isArray(families)) return families.filter((entry) => typeof entry === 'string')
  return typeof family === 'string' && family !== '' ? [family] : []
}

/** Every field present and never null. */
const detailsOf = (model: ModelView): Json => {
  const details = storedDetails(model)
  return compact({
    parent_model: words(details.parent_model),
    format: words(details.format) || 'gguf',
    family: words(details.family),
    families: familiesOf(details),
    parameter_size: words(details.parameter_size),
    quantization_level: words(details.quantization_level),
    context_length: maxContext(model),
  })
}

/**
 * Ollama's words; a model that nobody described can at least complete. Nodes name what they are not known to lack, but
 * `ollama run` sends everything to `/api/embed` that says it embeds, so only a model that cannot complete says so.
 */
const ollamaCapabilities = (model: ModelView): string[] => {
  const known = capabilitiesOf(model) ?? []
  const spelled = new Set(known.map((capability: Capability) => (capability === 'chat' ? 'completion' : capability)))
  if (spelled.has('completion')) spelled.delete('embedding')
  return spelled.size > 0 ? [...spelled] : ['completion']
}

const modifiedAt = (model: ModelView): string => {
  const time = placesOf(model).find(({ stored }) => stored.modifiedAt)?.stored.modifiedAt
  return time === undefined ? unknownTime : shortTime(time)
}

const entry = (model: ModelView): Json => ({
  name: model.name,
  model: model.name,
  size: bytes(placesOf(model).find(({ stored }) => stored.sizeGb !== undefined)?.stored.sizeGb),
  digest: digestOf(model),
  details: detailsOf(model),
})

/** `GET /api/tags`. */
export const tags = (models: readonly ModelView[]): Json => ({
  models: models.map((model) => ({
    ...entry(model),
    modified_at: modifiedAt(model),
    capabilities: ollamaCapabilities(model),
  })),
})

type Resident = NonNullable<ModelView['nodes'][number]['resident']>

/** The copy that stays longest stands for the model; one without an expiry stays for ever. */
const residentOf = ({ nodes }: ModelView, now: number): { resident: Resident; expiresAt: number } | undefined =>
  nodes
    .flatMap(({ online, resident }) =>
      online && resident ? [{ resident, expiresAt: resident.expiresAt ?? now + foreverMs }] : [],
    )
    .sort((a, b) => b.expiresAt - a.expiresAt)[0]

/** `GET /api/ps`, latest expiry first. `now` in ms since the epoch. */
export const ps = (models: readonly ModelView[], now: number): Json => ({
  models: models
    .flatMap((model) => {
      const found = residentOf(model, now)
      return found ? [{ model, ...found }] : []
    })
    .sort((a, b) => b.expiresAt - a.expiresAt)
    .map(({ model, resident, expiresAt }) => {
      const listed = entry(model)
      const size = resident.memoryGb === undefined ? listed.size : bytes(resident.memoryGb)
      return compact({
        ...listed,
        size,
        expires_at: rfc3339(expiresAt),
        size_vram: resident.vramGb === undefined ? size : bytes(resident.vramGb),
        context_length: resident.contextTokens,
      })
    }),
})

const modelInfo = (model: ModelView): Json => {
  const details = storedDetails(model)
  const architecture = words(details.architecture) || words(details.family) || 'unknown'
  return compact({
    ...(isObject(details.model_info) ? details.model_info : {}),
    'general.architecture': architecture,
    'general.basename': model.name,
    // The architecture's limit, else the window in use; when neither is known, nothing is made up.
    [`${architecture}.context_length`]: maxContext(model) ?? loadedContext(model),
  })
}

/** `POST /api/show`. */
export const show = (model: ModelView): Json => {
  const capabilities = ollamaCapabilities(model)
  const window = loadedContext(model)
  return {
    license: '',
    modelfile: `FROM ${model.name}\n`,
    parameters: window === undefined ? '' : `num_ctx ${window}`,
    // Editors look for the suffix in the template to know whether the model can fill in the middle.
    template: capabilities.includes('insert') ? '{{ .Prompt }}{{ .Suffix }}' : '{{ .Prompt }}',
    system: '',
    details: detailsOf(model),
    model_info: modelInfo(model),
    capabilities,
    modified_at: modifiedAt(model),
  }
}
