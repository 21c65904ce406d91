import { describe, expect, test } from 'bun:test'
import { encode } from '../../../src/wire/bytes'
import { rejectionOf } from '../../../src/wire/rejection'
import { text } from './golden'

/** What an OpenAI client gets of a node's refusal, whichever endpoint the node was asked at. */
const told = (body: unknown, status = 400) => {
  const answer = rejectionOf('openai', 'req_1', false, status, encode(JSON.stringify(body)))
  return { status: answer.status, ...JSON.parse(text(answer.body)) }
}

const llamaServer = {
  error: { code: 400, message: 'too long', type: 'exceed_context_size_error', n_prompt_tokens: 5_000, n_ctx: 4_096 },
}

describe("an engine's refusal, wherever its words stand", () => {
  test.each([
    ['llama-server, vLLM', { error: { message: 'no', type: 'invalid_request_error' } }],
    ['Ollama', { error: 'no' }],
    ['SGLang, early vLLM', { object: 'error', message: 'no', type: 'BadRequestError', param: null, code: 400 }],
    ['KoboldCpp', { detail: { msg: 'no', type: 'bad_input' } }],
    ['FastAPI', { detail: 'no' }],
    ['Ollama for the engine below it', { error: '{"error":{"code":400,"message":"no"}}' }],
  ])('%s', (_, body) => {
    expect(told(body)).toMatchObject({ status: 400, error: { message: 'no' }, fleet: { code: 'upstream_rejected' } })
  })

  test("FastAPI's list names the members, without what the client had in them", () => {
    const detail = [
      { type: 'int_type', loc: ['body', 'top_k'], msg: 'Input should be a valid integer', input: 'a secret' },
      { type: 'missing', loc: ['body', 'model'], msg: 'Field required' },
    ]

    const { error } = told({ detail }, 422)

    expect(error.message).toBe('body.top_k: Input should be a valid integer; body.model: Field required')
  })

  test.each([[{}], [{ detail: [] }], [{ error: null }], [{ error: {} }]])(
    'no words in %j: the status at least',
    (body) => {
      expect(told(body, 422).error.message).toBe('The node refused the request with status 422.')
    },
  )
})

describe('a prompt that is too long', () => {
  test.each([
    ['llama-server', llamaServer],
    ['Ollama for llama-server', { error: JSON.stringify(llamaServer) }],
    [
      'vLLM',
      {
        error: {
          message: "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
        },
      },
    ],
    ['SGLang', { message: "The input (5000 tokens) is longer than the model's context length (4096 tokens)." }],
    [
      'SGLang with its answer',
      {
        message:
          "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
      },
    ],
  ])('%s: both numbers', (_, body) => {
    const { error } = told(body)

    expect(error.code).toBe('context_length_exceeded')
    expect(error.message).toMatch(/4096 tokens/)
    expect(error.message).toMatch(/5000/)
  })

  test('Ollama: without numbers', () => {
    expect(told({ error: 'the input length exceeds the context length' }).error.code).toBe('context_length_exceeded')
  })

  test('a word about the context alone is none', () => {
    expect(told({ error: 'invalid option: context length' }).error.code).toBeNull()
  })
})
