import { answer, type Demand, serveSilently } from './answer'
import { ollamaChatFormat, ollamaGenerateFormat } from './ollama-format'
import { capabilitiesOf, modelOf, sendRunning, sendShow, sendTags } from './ollama-models'
import { openAiError, openAiRoute, type OpenAiRules } from './openai-routes'
import type { FakeModel } from './options'
import { countTokens, embeddingOf, type Question } from './question'
import { type Face, sendError, sendJson, type Turn } from './turn'

const TYPES: Readonly<Record<number, string>> = { 400: 'invalid_request_error', 404: 'not_found_error' }
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

const errorBody: Face['errorBody'] = (path, status, message) =>
  path.startsWith('/v1/') ? openAiError(TYPES[status] ?? 'api_error', message, null) : { error: message }

const face = { errorBody }

/** Seconds as a number, or a duration such as `1h30m`; undefined when absent or odd. */
export const keepAliveMs = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value * 1000
  if (typeof value !== 'string') return undefined
  const parts = [...value.matchAll(/([\d.]+)(ms|s|m|h)/g)]
  if (parts.length === 0) return undefined
  const total = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? 0), 0)
  return value.startsWith('-') ? -total : total
}

interface Message {
  readonly role?: string
  readonly content?: string
  readonly images?: readonly string[]
}

interface Tool {
  readonly function?: { readonly name?: string; readonly parameters?: unknown }
}

const optionsOf = (turn: Turn): Readonly<Record<string, unknown>> =>
  (turn.json.options ?? {}) as Record<string, unknown>

/** The window: without `num_ctx` the model's default, which may differ from what is loaded and then reloads it. */
const contextOf = (turn: Turn, model: FakeModel): number => {
  const asked = optionsOf(turn).num_ctx
  return typeof asked === 'number' ? asked : (model.defaultContextTokens ?? model.contextTokens)
}

const wantsThinking = (turn: Turn, model: FakeModel): boolean =>
  capabilitiesOf(model).includes('thinking') && turn.json.think !== false

const common = (turn: Turn, model: FakeModel): Pick<Question, 'model' | 'think' | 'json' | 'maxTokens'> => {
  const { format } = turn.json
  const limit = optionsOf(turn).num_predict
  return {
    model,
    think: wantsThinking(turn, model),
    json: format === 'json' ? true : format || undefined,
    ...(typeof limit === 'number' ? { maxTokens: limit } : {}),
  }
}

const chatQuestion = (turn: Turn, model: FakeModel): Question => {
  const messages = (turn.json.messages ?? []) as readonly Message[]
  const last = messages.at(-1)
  return {
    ...common(turn, model),
    text: messages.map((message) => message.content ?? '').join('\n'),
    last: last?.role === 'user' ? (last.content ?? '') : '',
    tools: ((turn.json.tools ?? []) as readonly Tool[]).map((tool) => ({
      name: tool.function?.name ?? '',
      parameters: tool.function?.parameters,
    })),
    images: messages.flatMap((message) => message.images ?? []).length,
  }
}

const generateQuestion = (turn: Turn, model: FakeModel): Question => ({
  ...common(turn, model),
  text: `${turn.json.system ?? ''}${turn.json.prompt ?? ''}`,
  last: '',
  tools: [],
  images: Array.isArray(turn.json.images) ? turn.json.images.length : 0,
})

/** Window and keep-alive as the request has them. */
const demandOf = (turn: Turn, model: FakeModel): Pick<Demand, 'contextTokens' | 'keepAliveMs'> => {
  const keep = keepAliveMs(turn.json.keep_alive)
  return { contextTokens: contextOf(turn, model), ...(keep === undefined ? {} : { keepAliveMs: keep }) }
}

/** An empty request: loads the model, or unloads it with `keep_alive: 0`. */
const loadOrUnload = (turn: Turn, model: FakeModel, isChat: boolean): void => {
  const demand = demandOf(turn, model)
  const finish = (reason: 'load' | 'unload'): void =>
    sendJson(turn, {
      model: model.name,
      created_at: new Date().toISOString(),
      ...(isChat ? { message: { role: 'assistant', content: '' } } : { response: '' }),
      done: true,
      done_reason: reason,
    })
  if (demand.keepAliveMs === 0) {
    turn.machine.engine.unload(model.name)
    finish('unload')
  } else serveSilently(turn, face, { model, ...demand, promptTokens: 0 }, () => finish('load'))
}

const generate = (turn: Turn, isChat: boolean) => {
  const { json } = turn
  const model = modelOf(turn, face)
  if (!model) return
  if (!capabilitiesOf(model).includes('completion')) {
    return sendError(turn, face, 400, `"${model.name}" does not support ${isChat ? 'chat' : 'generate'}`)
  }
  if (json.think && !capabilitiesOf(model).includes('thinking')) {
    return sendError(turn, face, 400, `"${model.name}" does not support thinking`)
  }
  const isEmpty = isChat ? !(json.messages as unknown[] | undefined)?.length : !json.prompt && !json.images
  if (isEmpty) return loadOrUnload(turn, model, isChat)
  const question = isChat ? chatQuestion(turn, model) : generateQuestion(turn, model)
  answer(turn, {
    question,
    stream: json.stream !== false,
    format: (isChat ? ollamaChatFormat : ollamaGenerateFormat)(String(json.model ?? json.name)),
    ...demandOf(turn, model),
    face,
  })
}

const embed = (turn: Turn, isLegacy: boolean): void => {
  const model = modelOf(turn, face)
  if (!model) return
  const texts = [isLegacy ? turn.json.prompt : turn.json.input].flat().map(String)
  const promptTokens = texts.reduce((sum, text) => sum + countTokens(text), 0)
  const result = isLegacy
    ? { embedding: embeddingOf(texts[0] ?? '') }
    : { model: model.name, embeddings: texts.map(embeddingOf), prompt_eval_count: promptTokens }
  serveSilently(turn, face, { model, ...demandOf(turn, model), promptTokens }, () => sendJson(turn, result))
}

const rules: OpenAiRules = {
  flavour: { thinking: 'reasoning', fingerprint: 'fp_ollama', timings: false },
  face,
  choose: (turn) => modelOf(turn, face),
}

const listOpenAiModels = (turn: Turn): void => {
  const data = turn.machine.models.map(({ name }) => ({
    id: name,
    object: 'model',
    created: 1767225600,
    owned_by: 'library',
  }))
  sendJson(turn, { object: 'list', data })
}

const show = (turn: Turn): void => {
  const model = modelOf(turn, face)
  if (model) sendShow(turn, model)
}

const routes: Readonly<Record<string, (turn: Turn) => void>> = {
  'GET /': ({ reply }) => reply.send(200, { 'content-type': 'text/plain; charset=utf-8' }, 'Ollama is running'),
  'GET /api/version': (turn) => sendJson(turn, { version: turn.machine.version }),
  'GET /api/tags': sendTags,
  'GET /api/ps': sendRunning,
  'POST /api/show': show,
  'POST /api/chat': (turn) => generate(turn, true),
  'POST /api/generate': (turn) => generate(turn, false),
  'POST /api/embed': (turn) => embed(turn, false),
  'POST /api/embeddings': (turn) => embed(turn, true),
  'GET /v1/models': listOpenAiModels,
}

/** Ollama: native API and its OpenAI compatibility routes. */
export const ollamaFace: Face = {
  headers: {},
  open: [],
  errorBody,
  handle(turn) {
    const { method, path } = turn.request
    if (openAiRoute(turn, rules)) return
    const route = routes[`${method === 'HEAD' ? 'GET' : method} ${path}`]
    if (route) return route(turn)
    const isKnown = Object.keys(routes).some((each) => each.endsWith(` ${path}`))
    turn.reply.send(
      isKnown ? 405 : 404,
      { 'content-type': 'text/plain' },
      isKnown ? '405 method not allowed' : '404 page not found',
    )
  },
}
