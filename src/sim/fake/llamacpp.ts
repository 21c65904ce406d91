import { sameModel } from '../../domain/job'
import { anthropicRoute } from './anthropic-routes'
import type { Resident } from './work'
import type { FakeModel } from './options'
import { openAiError, openAiRoute, type OpenAiRules } from './openai-routes'
import { countTokens } from './question'
import { type Face, sendError, sendJson, type Turn } from './turn'

const BYTES_PER_GB = 1e9
/** Parameters of a model of one GB, at about half a byte each. */
const PARAMS_PER_GB = 2e9

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  501: 'not_supported_error',
  503: 'unavailable_error',
}

export const llamaErrorBody: Face['errorBody'] = (_path, status, message) =>
  openAiError(TYPES[status] ?? 'server_error', message, status)

const face = { errorBody: llamaErrorBody }

/** What llama-server refuses on its own: a prompt over the window, pictures without a projector. */
export const refuseQuestion: NonNullable<OpenAiRules['refuse']> = (turn, question) => {
  const { model } = question
  const window = turn.machine.engine.find(model.name)?.contextTokens ?? model.contextTokens
  const tokens = countTokens(question.text)
  if (tokens > window) {
    const message = `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`
    sendJson(
      turn,
      openAiError('exceed_context_size_error', message, 400, { n_prompt_tokens: tokens, n_ctx: window }),
      400,
    )
    return true
  }
  if (question.images > 0 && !model.capabilities?.includes('vision')) {
    sendError(
      turn,
      face,
      500,
      'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
    )
    return true
  }
  return false
}

export const LLAMA_FLAVOUR = { thinking: 'reasoning_content', fingerprint: 'b9000-fake', timings: true } as const

export const metaOf = (model: FakeModel, contextTokens: number) => ({
  vocab_type: 2,
  n_vocab: 151936,
  n_ctx: contextTokens,
  n_ctx_train: model.contextTokens,
  n_embd: 2048,
  n_params: Math.round(model.sizeGb * PARAMS_PER_GB),
  size: Math.round(model.sizeGb * BYTES_PER_GB),
})

export const architectureOf = (model: FakeModel) => ({
  input_modalities: model.capabilities?.includes('vision') ? ['text', 'image'] : ['text'],
  output_modalities: ['text'],
})

export const sendProps = (turn: Turn, resident: Resident): void => {
  const { machine } = turn
  const can = (capability: 'vision' | 'audio'): boolean => resident.model.capabilities?.includes(capability) ?? false
  sendJson(turn, {
    default_generation_settings: { n_ctx: resident.contextTokens },
    total_slots: machine.slots,
    model_alias: resident.model.name,
    model_path: `/models/${resident.model.name}.gguf`,
    modalities: { vision: can('vision'), audio: can('audio') },
    chat_template_caps: { supports_tools: resident.model.capabilities?.includes('tools') ?? true },
    endpoint_slots: true,
    endpoint_props: false,
    endpoint_metrics: false,
    build_info: machine.version,
    is_sleeping: false,
  })
}

export const sendSlots = (turn: Turn, resident: Resident) => {
  const { machine, request } = turn
  const jobs = [...resident.running]
  if (request.query.get('fail_on_no_slot') && jobs.length >= machine.slots)
    return sendError(turn, face, 503, 'no slot available')
  const slots = Array.from({ length: machine.slots }, (_, id) => ({
    id,
    id_task: jobs[id] ? id : -1,
    n_ctx: resident.contextTokens,
    is_processing: jobs[id] !== undefined,
    next_token: [{ n_decoded: jobs[id]?.produced ?? 0 }],
  }))
  sendJson(turn, slots)
}

export const sendTokenCount = (turn: Turn): void => {
  const tokens = Array.from({ length: countTokens(String(turn.json.content ?? '')) }, (_, index) => index)
  sendJson(turn, { tokens })
}

const rules: OpenAiRules = {
  flavour: LLAMA_FLAVOUR,
  face,
  // The name in the request does not matter: there is only one model.
  choose: (turn) => turn.machine.models[0],
  refuse: refuseQuestion,
}

const listModels = (turn: Turn, resident: Resident): void => {
  const { model } = resident
  const entry = {
    id: model.name,
    aliases: [model.name],
    tags: [],
    object: 'model',
    created: 1767225600,
    owned_by: 'llamacpp',
    meta: metaOf(model, resident.contextTokens),
    architecture: architectureOf(model),
  }
  sendJson(turn, { models: [{ name: model.name, model: model.name }], object: 'list', data: [entry] })
}

/** llama-server with one model. */
export const llamaFace: Face = {
  headers: { server: 'llama.cpp' },
  open: ['/', '/health', '/v1/health', '/models', '/v1/models'],
  errorBody: llamaErrorBody,
  handle(turn) {
    const { request, machine } = turn
    const resident = machine.engine
      .residents()
      .find((each) => sameModel(each.model.name, machine.models[0]?.name ?? ''))
    if (resident?.state !== 'ready') return sendError(turn, face, 503, 'Loading model')
    if (openAiRoute(turn, rules) || anthropicRoute(turn, rules)) return
    switch (`${request.method} ${request.path}`) {
      case 'GET /health':
      case 'GET /v1/health':
        return sendJson(turn, { status: 'ok' })
      case 'GET /props':
        return sendProps(turn, resident)
      case 'GET /slots':
        return sendSlots(turn, resident)
      case 'GET /models':
      case 'GET /v1/models':
        return listModels(turn, resident)
      case 'POST /tokenize':
        return sendTokenCount(turn)
      case 'GET /metrics':
        return sendError(turn, face, 501, 'This server does not support metrics endpoint. Start it with `--metrics`')
      default:
        return sendError(turn, face, 404, 'File Not Found')
    }
  },
}
