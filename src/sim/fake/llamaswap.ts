import { sameModel } from '../../domain/job'
import { serveSilently } from './answer'
import { openAiError, openAiRoute, type OpenAiRules } from './openai-routes'
import type { FakeModel } from './options'
import { type Face, sendJson, type Turn } from './turn'

/** Requests at once for one model, running or waiting; more are refused. */
const CONCURRENCY_LIMIT = 10
/** Groups are exclusive unless somebody says otherwise: one model at a time. */
export const DEFAULT_GROUP_SIZE = 1

const UPSTREAM = /^\/upstream\/(.+)\/(health|slots|props)$/
const UNLOAD = /^\/api\/models\/unload\/(.+)$/

const errorBody: Face['errorBody'] = (_path, status, message) =>
  openAiError(status === 429 ? 'rate_limit_error' : 'invalid_request_error', message, codeOf(status))

const codeOf = (status: number): string =>
  status === 429 ? 'concurrency_limit' : status === 404 ? 'not_found' : 'bad_request'

const face = { errorBody }

const refuse = (turn: Turn, status: number, message: string, headers: Readonly<Record<string, string>> = {}): void =>
  turn.reply.send(
    status,
    { 'content-type': 'application/json', ...headers },
    JSON.stringify(errorBody(turn.request.path, status, message)),
  )

const named = (turn: Turn, name: string): FakeModel | undefined =>
  turn.machine.models.find((each) => sameModel(each.name, name))

const rules: OpenAiRules = {
  flavour: { thinking: 'reasoning_content', fingerprint: 'b9000-fake', timings: true },
  face,
  choose(turn) {
    const model = named(turn, String(turn.json.model ?? ''))
    if (!model) refuse(turn, 404, 'no router for requested model')
    return model
  },
  refuse(turn, { model }) {
    const resident = turn.machine.engine.find(model.name)
    if (!resident || resident.running.size + resident.waiting.length < CONCURRENCY_LIMIT) return false
    refuse(turn, 429, 'Too many requests', { 'retry-after': '1' })
    return true
  },
}

const sendList = (turn: Turn): void =>
  sendJson(turn, {
    object: 'list',
    data: turn.machine.models.map(({ name, contextTokens }) => ({
      id: name,
      object: 'model',
      created: 1767225600,
      owned_by: 'llama-swap',
      context_length: contextTokens,
      status: { value: turn.machine.engine.find(name) ? 'loaded' : 'unloaded' },
      meta: { n_ctx: contextTokens, llamaswap: { type: 'model' } },
    })),
  })

const sendRunning = (turn: Turn): void => {
  const { engine, faults } = turn.machine
  const running = engine.residents().map(({ model, state, leaving }) => ({
    model: model.name,
    state: leaving ? 'stopping' : state === 'ready' ? 'ready' : 'starting',
    cmd: 'llama-server',
    proxy: 'http://localhost:5800',
    ttl: 0,
  }))
  const lie = faults.peek('lie_resident')?.model
  sendJson(turn, { running: lie === undefined ? running : [...running, { model: lie, state: 'ready' }] })
}

/** Reaches the model's own server, and starts it for that. */
const passUpstream = (turn: Turn, name: string) => {
  const model = named(turn, name)
  if (!model) return refuse(turn, 404, 'model not found')
  serveSilently(turn, face, { model, promptTokens: 0 }, () => sendJson(turn, { status: 'ok' }))
}

const unload = (turn: Turn, name: string) => {
  if (!named(turn, name)) return refuse(turn, 404, 'model not found')
  turn.machine.engine.unload(name)
  turn.reply.send(200, { 'content-type': 'text/plain' }, 'OK')
}

const unloadAll = (turn: Turn): void => {
  for (const { model } of [...turn.machine.engine.residents()]) turn.machine.engine.unload(model.name)
  turn.reply.send(200, { 'content-type': 'text/plain' }, 'OK')
}

/** llama-swap: one server process per model, started by whatever asks for it. */
export const swapFace: Face = {
  headers: {},
  open: ['/health'],
  errorBody,
  handle(turn) {
    if (openAiRoute(turn, rules)) return
    const { method, path } = turn.request
    const upstream = UPSTREAM.exec(decodeURIComponent(path))?.[1]
    if (upstream !== undefined) return passUpstream(turn, upstream)
    const leaving = method === 'POST' ? UNLOAD.exec(decodeURIComponent(path))?.[1] : undefined
    if (leaving !== undefined) return unload(turn, leaving)
    switch (`${method} ${path}`) {
      case 'GET /health':
        return turn.reply.send(200, { 'content-type': 'text/plain' }, 'OK')
      case 'GET /api/version':
        return sendJson(turn, { version: turn.machine.version, commit: 'fake', build_date: '2026-08-22' })
      case 'GET /v1/models':
        return sendList(turn)
      case 'GET /running':
        return sendRunning(turn)
      // A command, although it looks like a question.
      case 'GET /unload':
      case 'POST /api/models/unload':
        return unloadAll(turn)
      default:
        return refuse(turn, 404, 'not found')
    }
  },
}
