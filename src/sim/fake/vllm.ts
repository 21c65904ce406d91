import { listedOpenAiRules, openAiErrorBody } from './openai'
import { openAiRoute } from './openai-routes'
import { type Face, sendJson, type Turn } from './turn'

/** The first model is the one; the others stand for its LoRA adapters. */
const sendList = (turn: Turn): void => {
  const { models } = turn.machine
  const [base] = models
  sendJson(turn, {
    object: 'list',
    data: models.map((model) => ({
      id: model.name,
      object: 'model',
      created: 1767225600,
      owned_by: 'vllm',
      root: model === base ? `org/${model.name}` : `/adapters/${model.name}`,
      parent: model === base ? null : base?.name,
      max_model_len: model === base ? model.contextTokens : null,
    })),
  })
}

const sendMetrics = (turn: Turn): void => {
  const { engine, models, slots } = turn.machine
  const labels = `{engine="0",model_name="${models[0]?.name}"}`
  const waiting = engine.residents().reduce((sum, resident) => sum + resident.waiting.length, 0)
  const running = engine.running()
  const usage = Math.min(1, running / (slots * models.length))
  turn.reply.send(
    200,
    { 'content-type': 'text/plain; version=1.0.0; charset=utf-8' },
    [
      '# HELP vllm:num_requests_running Number of requests in model execution batches.',
      '# TYPE vllm:num_requests_running gauge',
      `vllm:num_requests_running${labels} ${running.toFixed(1)}`,
      '# TYPE vllm:num_requests_waiting gauge',
      `vllm:num_requests_waiting${labels} ${waiting.toFixed(1)}`,
      '# TYPE vllm:kv_cache_usage_perc gauge',
      `vllm:kv_cache_usage_perc${labels} ${usage}`,
      '',
    ].join('\n'),
  )
}

/** vLLM: one model for the life of the process, many requests at once. */
export const vllmFace: Face = {
  headers: { server: 'uvicorn' },
  open: ['/health', '/version', '/metrics'],
  errorBody: openAiErrorBody,
  handle(turn) {
    if (openAiRoute(turn, listedOpenAiRules)) return
    switch (`${turn.request.method} ${turn.request.path}`) {
      case 'GET /v1/models':
        return sendList(turn)
      case 'GET /version':
        return sendJson(turn, { version: turn.machine.version })
      case 'GET /health':
        return turn.reply.send(200, {}, '')
      case 'GET /metrics':
        return sendMetrics(turn)
      default:
        return sendJson(turn, { detail: 'Not Found' }, 404)
    }
  },
}
