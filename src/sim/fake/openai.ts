import { openAiError, openAiRoute, type OpenAiRules } from './openai-routes'
import { countTokens } from './question'
import { type Face, sendError, sendJson, type Turn } from './turn'
import { sameModel } from '../../domain/job'

const TYPES: Readonly<Record<number, string>> = { 400: 'BadRequestError', 401: 'Unauthorized', 404: 'NotFoundError' }

export const openAiErrorBody: Face['errorBody'] = (_path, status, message) =>
  openAiError(TYPES[status] ?? 'InternalServerError', message, status)

/** Serves what is listed and nothing else. */
export const listedOpenAiRules: OpenAiRules = {
  flavour: { thinking: 'reasoning_content', fingerprint: 'fp_fake', timings: false },
  face: { errorBody: openAiErrorBody },
  choose(turn) {
    const name = String(turn.json.model ?? '')
    const model = turn.machine.models.find((each) => sameModel(each.name, name))
    if (!model) sendError(turn, { errorBody: openAiErrorBody }, 404, `The model \`${name}\` does not exist.`)
    return model
  },
  refuse(turn, question) {
    const tokens = countTokens(question.text)
    const { contextTokens } = question.model
    if (tokens <= contextTokens) return false
    const message = `This model's maximum context length is ${contextTokens} tokens. However, your request has ${tokens} input tokens. Please reduce the length of the input messages.`
    sendError(turn, { errorBody: openAiErrorBody }, 400, message)
    return true
  },
}

const listModels = (turn: Turn): void =>
  sendJson(turn, {
    object: 'list',
    data: turn.machine.models.map((model) => ({
      id: model.name,
      object: 'model',
      created: 1767225600,
      owned_by: 'fake',
      max_model_len: model.contextTokens,
    })),
  })

/** Any server that speaks OpenAI and tells nothing else. */
export const openAiFace: Face = {
  headers: { server: 'uvicorn' },
  open: [],
  errorBody: openAiErrorBody,
  handle(turn) {
    if (openAiRoute(turn, listedOpenAiRules)) return
    if (turn.request.method === 'GET' && turn.request.path === '/v1/models') return listModels(turn)
    sendJson(turn, { detail: 'Not Found' }, 404)
  },
}
