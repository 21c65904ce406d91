import { sameModel } from '../../domain/job'
import { serveSilently } from './answer'
import { openAiError, openAiRoute, type OpenAiRules } from './openai-routes'
import type { FakeModel } from './options'
import { type Face, sendError, sendJson, type Turn } from './turn'

const BYTES_PER_GB = 1e9

const errorBody: Face['errorBody'] = (_path, _status, message) => openAiError('invalid_request_error', message, null)

const face = { errorBody }

const named = (turn: Turn, name: unknown): FakeModel | undefined =>
  turn.machine.models.find((each) => sameModel(each.name, String(name ?? '')))

const isLoaded = (turn: Turn, model: FakeModel): boolean => {
  const lie = turn.machine.faults.peek('lie_resident')?.model
  return turn.machine.engine.find(model.name)?.state === 'ready' || (lie !== undefined && sameModel(lie, model.name))
}

const windowOf = (turn: Turn, model: FakeModel): number =>
  turn.machine.engine.find(model.name)?.contextTokens ?? model.contextTokens

/** Any request loads its model ("just in time"), whatever is in its way. */
const rules: OpenAiRules = {
  flavour: { thinking: 'reasoning_content', fingerprint: 'lmstudio-fake', timings: false },
  face,
  choose(turn) {
    const model = named(turn, turn.json.model)
    if (model) return model
    const message = `Model "${String(turn.json.model)}" not found. Load it or download it first.`
    sendJson(turn, openAiError('invalid_request_error', message, 'model_not_found', { param: 'model' }), 404)
    return undefined
  },
}

const sendList = (turn: Turn): void =>
  sendJson(turn, {
    object: 'list',
    data: turn.machine.models.map(({ name }) => ({ id: name, object: 'model', owned_by: 'organization_owner' })),
  })

const isEmbedding = ({ capabilities }: FakeModel): boolean => capabilities?.includes('embedding') ?? false
const sees = ({ capabilities }: FakeModel): boolean => capabilities?.includes('vision') ?? false

const sendOlderList = (turn: Turn): void =>
  sendJson(turn, {
    object: 'list',
    data: turn.machine.models.map((model) => ({
      id: model.name,
      object: 'model',
      type: isEmbedding(model) ? 'embeddings' : sees(model) ? 'vlm' : 'llm',
      publisher: 'fake',
      arch: 'fake',
      compatibility_type: 'gguf',
      quantization: 'Q4_K_M',
      state: isLoaded(turn, model) ? 'loaded' : 'not-loaded',
      max_context_length: model.contextTokens,
      ...(isLoaded(turn, model) ? { loaded_context_length: windowOf(turn, model) } : {}),
    })),
  })

const sendNewerList = (turn: Turn): void =>
  sendJson(turn, {
    models: turn.machine.models.map((model) => ({
      type: isEmbedding(model) ? 'embedding' : 'llm',
      publisher: 'fake',
      key: model.name,
      display_name: model.name,
      size_bytes: Math.round(model.sizeGb * BYTES_PER_GB),
      loaded_instances: isLoaded(turn, model)
        ? [{ id: model.name, config: { context_length: windowOf(turn, model), parallel: turn.machine.slots } }]
        : [],
      max_context_length: model.contextTokens,
      format: 'gguf',
      capabilities: { vision: sees(model), trained_for_tool_use: true },
    })),
  })

const load = (turn: Turn) => {
  const model = named(turn, turn.json.model)
  if (!model) return sendError(turn, face, 404, `Model "${String(turn.json.model)}" not found`)
  const loaded = { type: 'llm', instance_id: model.name, status: 'loaded', load_time_seconds: 1 }
  // A second copy, as LM Studio makes one of a model that it has already.
  if (isLoaded(turn, model)) return sendJson(turn, { ...loaded, instance_id: `${model.name}:2` })
  const window = turn.json.context_length
  const demand = { model, promptTokens: 0, ...(typeof window === 'number' ? { contextTokens: window } : {}) }
  serveSilently(turn, face, demand, () => sendJson(turn, loaded))
}

const unload = (turn: Turn) => {
  const id = String(turn.json.instance_id ?? '')
  if (!turn.machine.engine.find(id)) return sendError(turn, face, 404, `No instance ${id}`)
  turn.machine.engine.unload(id)
  sendJson(turn, { instance_id: id })
}

const studioFace = (generation: 'v0' | 'v1'): Face => ({
  headers: { 'x-powered-by': 'Express' },
  open: [],
  errorBody,
  handle(turn) {
    if (openAiRoute(turn, rules)) return
    const { method, path } = turn.request
    const route = `${method} ${path}`
    if (route === 'GET /v1/models') return sendList(turn)
    if (route === 'GET /api/v0/models') return sendOlderList(turn)
    if (generation === 'v1') {
      if (route === 'GET /api/v1/models') return sendNewerList(turn)
      if (route === 'POST /api/v1/models/load') return load(turn)
      if (route === 'POST /api/v1/models/unload') return unload(turn)
    }
    sendJson(turn, { error: `Unexpected endpoint or method. (${method} ${path}). Returning 200 anyway` })
  },
})

/** LM Studio from 0.4 on. */
export const studioNewFace = studioFace('v1')
/** LM Studio before 0.4: it tells what is loaded and loads only by a request. */
export const studioOldFace = studioFace('v0')
