import { describe, expect, test } from 'bun:test'
import { refusalClass } from '../../../src/nodes/relay-refusal'
import type { UpstreamReply } from '../../../src/nodes/upstream'

const classOf = (status: number, body: unknown): string => {
  const reply: UpstreamReply = {
    status,
    headers: { 'content-type': 'application/json' },
    read: async () => undefined,
    close: () => {},
  }
  return refusalClass(reply, new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)))
}

const openAi = (message: string) => ({ error: { message, type: 'x', code: 404 } })

describe('BL-N05 a node that does not know the model concerns that node alone', () => {
  test.each([
    ['vLLM', 404, openAi('The model `org/Big-Model` does not exist.')],
    ['Ollama', 404, { error: "model 'qwen3:8b' not found" }],
    ['an older Ollama', 404, { error: 'model "qwen3:8b" not found, try pulling it first' }],
    ['llama-server with several models', 400, openAi("model 'qwen' not found")],
    ['llama-swap', 404, openAi('no router for requested model')],
    ['llama-swap without such a process', 404, openAi('no local server found for requested model')],
    ['an older llama-swap', 404, 'llama-swap: no router for requested model'],
    ['OpenAI', 404, openAi('The model `x` does not exist or you do not have access to it.')],
    ['LM Studio', 400, openAi('Invalid model identifier "x". Please specify a valid downloaded model.')],
  ])('%s', (_engine, status, body) => {
    expect(classOf(status, body)).toBe('model_missing')
  })

  test.each([
    ['a path that is not there', 404, { detail: 'Not Found' }],
    ['a tool that is not there', 400, openAi("tool 'search' not found")],
    ['a prompt that is too long', 400, openAi("This model's maximum context length is 100 tokens.")],
    ['a model that cannot do it', 400, openAi('model does not support tools')],
    ['the same words with another status', 422, openAi('The model `x` does not exist.')],
  ])('but not %s', (_what, status, body) => {
    expect(classOf(status, body)).toBe('rejected')
  })
})
