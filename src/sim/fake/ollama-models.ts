import { type Capability, modelKey, sameModel } from '../../domain/job'
import type { FakeModel } from './options'
import { sendError, sendJson, type Face, type Turn } from './turn'

const BYTES_PER_GB = 1e9
/** Where Ollama puts the expiry of a model that stays for ever. */
const FOR_EVER = '2318-01-01T00:00:00Z'
const DEFAULT_CAPABILITIES: readonly Capability[] = ['completion', 'tools']

/** Ollama lists every name with its tag. */
const tagged = (name: string): string => (name.includes(':') ? name : `${name}:latest`)

const digestOf = (model: FakeModel): string =>
  model.digest ?? new Bun.CryptoHasher('sha256').update(modelKey(model.name)).digest('hex')

const detailsOf = (model: FakeModel) => ({
  parent_model: '',
  format: 'gguf',
  family: 'fake',
  families: ['fake'],
  parameter_size: `${(model.sizeGb * 1.7).toFixed(1)}B`,
  quantization_level: 'Q4_K_M',
})

export const capabilitiesOf = (model: FakeModel): string[] => {
  const listed = (model.capabilities ?? DEFAULT_CAPABILITIES).map((each) => (each === 'chat' ? 'completion' : each))
  return [...new Set(listed)]
}

export const findModel = (turn: Turn, name: string): FakeModel | undefined =>
  turn.machine.models.find((each) => sameModel(each.name, name))

/** The model that the request names, `model` or the older `name`; undefined after a 404. */
export const modelOf = (turn: Turn, face: Pick<Face, 'errorBody'>): FakeModel | undefined => {
  const name = String(turn.json.model ?? turn.json.name ?? '')
  const model = findModel(turn, name)
  if (!model) sendError(turn, face, 404, `model '${name}' not found`)
  return model
}

export const sendTags = (turn: Turn): void => {
  const models = turn.machine.models.map((model) => ({
    name: tagged(model.name),
    model: tagged(model.name),
    modified_at: '2026-01-01T00:00:00Z',
    size: Math.round(model.sizeGb * BYTES_PER_GB),
    digest: digestOf(model),
    details: { ...detailsOf(model), context_length: model.contextTokens },
    capabilities: capabilitiesOf(model),
  }))
  sendJson(turn, { models })
}

interface Loaded {
  readonly model: FakeModel
  readonly memoryGb: number
  readonly contextTokens: number
  readonly expiresAt: number
}

const loadedModels = (turn: Turn): Loaded[] => {
  const { engine, faults } = turn.machine
  const loaded: Loaded[] = engine.residents().map((each) => ({ ...each }))
  const lie = faults.peek('lie_resident')?.model
  const liar = lie === undefined ? undefined : findModel(turn, lie)
  if (liar && !engine.find(liar.name)) {
    const { contextTokens, defaultContextTokens = contextTokens } = liar
    loaded.push({
      model: liar,
      memoryGb: liar.sizeGb,
      contextTokens: defaultContextTokens,
      expiresAt: Number.POSITIVE_INFINITY,
    })
  }
  return loaded
}

const expiryOf = (turn: Turn, { model, expiresAt }: Loaded): string => {
  const { faults, wallTime } = turn.machine
  const stale = faults.peek('stale_expiry', { path: '', model: model.name, inference: true })
  if (stale) return new Date(Date.now() - stale.agoMs).toISOString()
  return Number.isFinite(expiresAt) ? new Date(wallTime(expiresAt)).toISOString() : FOR_EVER
}

/** Models still loading are listed too, as Ollama does. */
export const sendRunning = (turn: Turn): void => {
  const models = loadedModels(turn)
    .sort((a, b) => b.expiresAt - a.expiresAt)
    .map((loaded) => ({
      name: tagged(loaded.model.name),
      model: tagged(loaded.model.name),
      size: Math.round(loaded.memoryGb * BYTES_PER_GB),
      digest: digestOf(loaded.model),
      details: detailsOf(loaded.model),
      expires_at: expiryOf(turn, loaded),
      size_vram: Math.round(loaded.memoryGb * BYTES_PER_GB),
      context_length: loaded.contextTokens,
    }))
  sendJson(turn, { models })
}

export const sendShow = (turn: Turn, model: FakeModel): void =>
  sendJson(turn, {
    modelfile: `FROM ${tagged(model.name)}`,
    parameters: `num_ctx ${model.defaultContextTokens ?? model.contextTokens}`,
    template: '{{ .Prompt }}',
    details: detailsOf(model),
    model_info: {
      'general.architecture': 'fake',
      'general.basename': model.name,
      'general.parameter_count': Math.round(model.sizeGb * 1.7e9),
      'fake.context_length': model.contextTokens,
      'fake.embedding_length': 2048,
    },
    capabilities: capabilitiesOf(model),
    modified_at: '2026-01-01T00:00:00Z',
  })
