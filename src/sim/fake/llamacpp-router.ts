import { serveSilently } from './answer'
import { sameModel } from '../../domain/job'
import { anthropicRoute } from './anthropic-routes'
import type { Resident } from './work'
import {
  architectureOf,
  LLAMA_FLAVOUR,
  llamaErrorBody,
  metaOf,
  refuseQuestion,
  sendProps,
  sendSlots,
  sendTokenCount,
} from './llamacpp'
import { openAiRoute, type OpenAiRules } from './openai-routes'
import type { FakeModel } from './options'
import { type Face, sendError, sendJson, type Turn } from './turn'

/** What the router says about its own window: nothing. */
const NO_CONTEXT = 0
export const DEFAULT_MAX_MODELS = 4

const face = { errorBody: llamaErrorBody }

const named = (turn: Turn, name: string): FakeModel | undefined =>
  turn.machine.models.find((each) => sameModel(each.name, name))

const isReady = (turn: Turn, model: FakeModel): boolean => turn.machine.engine.find(model.name)?.state === 'ready'

/** The model of a request, by the router's rules: unknown names and forbidden autoloads are 400. */
const choose = (turn: Turn, name: string): FakeModel | undefined => {
  const model = named(turn, name)
  if (!model) {
    sendError(turn, face, 400, `model '${name}' not found`)
    return undefined
  }
  if (turn.request.query.get('autoload') === 'false' && !isReady(turn, model)) {
    sendError(turn, face, 400, 'model is not loaded')
    return undefined
  }
  return model
}

const rules: OpenAiRules = {
  flavour: LLAMA_FLAVOUR,
  face,
  choose: (turn) => choose(turn, String(turn.json.model ?? '')),
  refuse: refuseQuestion,
}

/** Starts a load if need be; `then` runs once the model is in memory. */
const whenLoaded = (turn: Turn, model: FakeModel, then: (resident: Resident) => void): void => {
  const { engine } = turn.machine
  serveSilently(turn, face, { model, promptTokens: 0 }, () => {
    const resident = engine.find(model.name)
    if (resident) then(resident)
  })
}

/** GET routes of one model: even these load it unless `autoload=false`. */
const forModel = (turn: Turn, then: (resident: Resident) => void): void => {
  const model = choose(turn, turn.request.query.get('model') ?? '')
  if (model) whenLoaded(turn, model, then)
}

const statusOf = (turn: Turn, model: FakeModel) => {
  const { engine, faults } = turn.machine
  const lie = faults.peek('lie_resident')?.model
  if (lie !== undefined && sameModel(lie, model.name)) return { value: 'loaded' }
  const state = engine.find(model.name)?.state
  if (state) return { value: state === 'ready' ? 'loaded' : 'loading' }
  return { value: 'unloaded', ...(engine.hasFailed(model.name) ? { failed: true, exit_code: 1 } : {}) }
}

const listModels = (turn: Turn): void => {
  const data = turn.machine.models.map((model) => {
    const resident = turn.machine.engine.find(model.name)
    const isLoaded = resident?.state === 'ready'
    return {
      id: model.name,
      aliases: [],
      tags: [],
      object: 'model',
      created: 1767225600,
      owned_by: 'llamacpp',
      path: `/models/${model.name}.gguf`,
      source: 'models-dir',
      can_remove: false,
      status: { ...statusOf(turn, model), args: [], preset: '' },
      architecture: architectureOf(model),
      ...(isLoaded ? { meta: metaOf(model, resident.contextTokens) } : {}),
    }
  })
  sendJson(turn, { object: 'list', data })
}

const load = (turn: Turn) => {
  const name = String(turn.json.model ?? '')
  const model = named(turn, name)
  if (!model) return sendError(turn, face, 404, `model '${name}' not found`)
  if (turn.machine.engine.find(name)) return sendError(turn, face, 400, 'model is already running')
  sendJson(turn, { success: true })
  whenLoaded(turn, model, () => {})
}

const unload = (turn: Turn) => {
  const name = String(turn.json.model ?? '')
  if (!named(turn, name)) return sendError(turn, face, 404, `model '${name}' not found`)
  if (!turn.machine.engine.find(name)) return sendError(turn, face, 400, 'model is not running')
  turn.machine.engine.unload(name)
  sendJson(turn, { success: true })
}

const sendRouterProps = (turn: Turn): void =>
  sendJson(turn, {
    role: 'router',
    max_instances: turn.machine.options.maxResident ?? DEFAULT_MAX_MODELS,
    models_autoload: true,
    model_alias: 'llama-server',
    default_generation_settings: { n_ctx: NO_CONTEXT },
    build_info: turn.machine.version,
  })

/** llama-server started without a model: loads what is asked for. */
export const llamaRouterFace: Face = {
  headers: { server: 'llama.cpp' },
  open: ['/', '/health', '/v1/health', '/models', '/v1/models'],
  errorBody: llamaErrorBody,
  handle(turn) {
    if (openAiRoute(turn, rules) || anthropicRoute(turn, rules)) return
    const { request } = turn
    switch (`${request.method} ${request.path}`) {
      case 'GET /health':
      case 'GET /v1/health':
        return sendJson(turn, { status: 'ok' })
      case 'GET /props':
        return request.query.has('model')
          ? forModel(turn, (resident) => sendProps(turn, resident))
          : sendRouterProps(turn)
      case 'GET /slots':
        return forModel(turn, (resident) => sendSlots(turn, resident))
      case 'GET /models':
      case 'GET /v1/models':
        return listModels(turn)
      case 'POST /models/load':
        return load(turn)
      case 'POST /models/unload':
        return unload(turn)
      case 'POST /tokenize':
        return sendTokenCount(turn)
      default:
        return sendError(turn, face, 404, 'File Not Found')
    }
  },
}
