import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import type { ReplyTransform } from '../../../src/wire/exchange'
import { arrivedAt, exchangeOf, nodeOf, run, text, timing } from './golden'

const encode = (value: string): Uint8Array => new TextEncoder().encode(value)
const messages = [{ role: 'user', content: 'hi' }]
const said = (message: object): string => `${JSON.stringify({ model: 'm', message, done: false })}\n`
const end = (doneReason: string): string =>
  `${JSON.stringify({ model: 'm', message: { content: '' }, done: true, done_reason: doneReason })}\n`

const openaiOnOllama = (more: object = {}): ReplyTransform => {
  const exchange = exchangeOf('/v1/chat/completions', { model: 'asked', stream: true, messages, ...more })
  return exchange.reply(exchange.request({ node: nodeOf('ollama'), model: 'm', native: ['ollama'] }), 'm', timing())
}

const ollamaOnOpenai = (path = '/api/chat', more: object = { messages }): ReplyTransform => {
  const exchange = exchangeOf(path, { model: 'asked', ...more })
  return exchange.reply(exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] }), 'm', timing())
}

interface Chunk {
  readonly id: string
  readonly created: number
  readonly choices: readonly {
    readonly index: number
    readonly delta: {
      readonly role?: string
      readonly content?: string
      readonly reasoning_content?: string
      readonly tool_calls?: readonly {
        index: number
        id: string
        type: string
        function: { name: string; arguments: string }
      }[]
    }
    readonly finish_reason: string | null
  }[]
}

const chunks = (told: string): Chunk[] =>
  told
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)))

describe('OpenAI client, Ollama node', () => {
  test('BL-P01 every streamed call has an index, an id and its type', () => {
    const told = run(openaiOnOllama(), [
      encode(said({ tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] }) + end('stop')),
    ])

    expect(chunks(told).flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))).toEqual([
      { index: 0, id: 'call_000000000001_0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
    ])
  })

  test.each([
    ['stop', 'tool_calls'],
    ['length', 'length'],
  ])('BL-P02 a call in one object and %s in the next end with %s', (doneReason, finish) => {
    const told = run(openaiOnOllama(), [
      encode(said({ tool_calls: [{ function: { name: 'f', arguments: {} } }] })),
      encode(end(doneReason)),
    ])

    expect(chunks(told).at(-1)?.choices[0]?.finish_reason).toBe(finish)
  })

  test('BL-P03 parallel calls keep apart, their arguments parse back equal, the stream has one id', () => {
    const first = { deep: { ключ: ['🌍', { é: null }] } }
    const told = chunks(
      run(openaiOnOllama(), [
        encode(said({ tool_calls: [{ function: { name: 'f', arguments: first } }] })),
        encode(said({ tool_calls: [{ function: { name: 'g', arguments: {} } }] })),
        encode(end('stop')),
      ]),
    )
    const calls = told.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))

    expect(calls.map(({ index }) => index)).toEqual([0, 1])
    expect(calls.map((call) => JSON.parse(call.function.arguments))).toEqual([first, {}])
    expect(new Set(told.map(({ id }) => id)).size).toBe(1)
    expect(new Set(told.map(({ created }) => created)).size).toBe(1)
    expect(told.filter(({ choices }) => choices[0]?.delta.role !== undefined).length).toBe(1)
    expect(told.every(({ choices }) => choices[0]?.index === 0)).toBe(true)
  })

  test('BL-P13 forty runs of thinking, an answer, thinking again and more answer keep their order', () => {
    const thoughts = Array.from({ length: 40 }, (_, index) => said({ content: '', thinking: `t${index} ` }))
    const lines = [
      ...thoughts,
      said({ content: 'a' }),
      said({ content: '', thinking: 'again' }),
      said({ content: 'b' }),
      end('stop'),
    ]

    const deltas = chunks(run(openaiOnOllama(), lines.map(encode))).flatMap(({ choices }) =>
      choices.map(({ delta }) => delta),
    )

    const order = deltas.flatMap(({ content, reasoning_content }) => reasoning_content ?? (content ? [content] : []))
    expect(order).toEqual([...Array.from({ length: 40 }, (_, index) => `t${index} `), 'a', 'again', 'b'])
  })

  test('BL-P10 an answer spent on thinking stays as it is: empty content, length, the reasoning in its own field', () => {
    const exchange = exchangeOf('/v1/chat/completions', { model: 'asked', messages, max_tokens: 200 })
    const request = exchange.request({ node: nodeOf('ollama'), model: 'm', native: ['ollama'] })
    const answer = {
      message: { role: 'assistant', content: '', thinking: 'long' },
      done: true,
      done_reason: 'length',
      eval_count: 200,
    }

    const told = JSON.parse(run(exchange.reply(request, 'm', timing()), [encode(JSON.stringify(answer))]))

    expect(told.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { content: '', reasoning_content: 'long' },
    })
  })

  test('BL-S07 a stream that ends without done:true is not complete and gets no [DONE]', () => {
    const transform = openaiOnOllama()
    const told = run(transform, [encode(said({ content: 'a' }))])

    expect(transform.begun()).toBe(true)
    expect(transform.complete()).toBe(false)
    expect(told).not.toContain('[DONE]')
  })

  test('an error line before anything else is a problem and nothing has begun', () => {
    const transform = openaiOnOllama()
    transform.push(encode('{"error":"model runner has unexpectedly stopped"}\n'))

    expect(transform.begun()).toBe(false)
    expect(transform.problem()).toEqual({ message: 'model runner has unexpectedly stopped' })
  })

  test('usage is counted whether or not the client wants to see it', () => {
    const transform = openaiOnOllama()
    run(transform, [encode(`{"message":{"content":"a"},"done":true,"prompt_eval_count":3,"eval_count":4}\n`)])

    expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4 })
    expect(transform.complete()).toBe(true)
  })

  test('an Ollama node is spoken to natively even if it offers /v1', () => {
    const exchange = exchangeOf('/v1/chat/completions', { model: 'asked', messages })

    const request = exchange.request({
      node: nodeOf('ollama'),
      model: 'm',
      native: ['openai', 'ollama'],
      contextTokens: 8192,
    })

    expect(request).toMatchObject({ path: '/api/chat', dialect: 'ollama', stream: false })
    expect(JSON.parse(text(request.body)).options).toEqual({ num_ctx: 8192 })
  })
})

test('a call from before there were several at once is a call, and its result finds it', () => {
  const exchange = exchangeOf('/v1/chat/completions', {
    model: 'asked',
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
      { role: 'function', name: 'f', content: 'done' },
    ],
  })
  const request = exchange.request({ node: nodeOf('ollama'), model: 'm', native: ['ollama'] })

  expect(JSON.parse(text(request.body)).messages.slice(1)).toEqual([
    { role: 'assistant', content: '', tool_calls: [{ function: { index: 0, name: 'f', arguments: { a: 1 } } }] },
    { role: 'tool', content: 'done', tool_name: 'f' },
  ])
})

describe('Ollama client, OpenAI-speaking node', () => {
  test('comments do not count as the beginning', () => {
    const transform = ollamaOnOpenai()
    transform.push(encode(': ping\n\n'))
    expect(transform.begun()).toBe(false)

    transform.push(encode('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'))
    expect(transform.begun()).toBe(true)
  })

  test('BL-S08 an error object where a stream was asked for is a problem', () => {
    const transform = ollamaOnOpenai()
    run(transform, [encode('{"error":{"message":"model not found","code":404}}')])

    expect(transform.problem()).toEqual({ message: 'model not found', status: 404 })
    expect(transform.complete()).toBe(false)
  })

  test('BL-P11 the text of a generate request lands in response', () => {
    const transform = ollamaOnOpenai('/api/generate', { prompt: 'hi' })
    const told = run(transform, [
      encode('data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ])

    expect(
      told
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ response, message }) => [response, message]),
    ).toEqual([
      ['a', undefined],
      ['', undefined],
    ])
  })

  test.each([{ suffix: 'x' }, { template: '{{ .Prompt }}' }, { context: [1, 2] }])(
    'BL-P11 %j is refused, never turned into a chat',
    (more) => {
      const exchange = exchangeOf('/api/generate', { model: 'asked', prompt: 'hi', ...more })

      expect(() => exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })).toThrow(RouterError)
    },
  )

  test.each([
    ['/api/chat', { messages: [] }],
    ['/api/generate', { keep_alive: 0 }],
    ['/api/generate', { keep_alive: '0s' }],
  ])('a request on %s that only loads or unloads needs nothing and goes to Ollama nodes alone', (path, more) => {
    const exchange = exchangeOf(path, { model: 'm', ...more })

    expect(exchange.job.needs).toEqual([])
    expect(exchange.request({ node: nodeOf('ollama'), model: 'm', native: ['ollama'] }).path).toBe(path)
    expect(() => exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })).toThrow(RouterError)
  })

  test('a request that only loads is answered for nodes of other kinds, one that unloads when no node has the model', () => {
    const load = exchangeOf('/api/chat', { model: 'm', messages: [] })
    const unload = exchangeOf('/api/generate', { model: 'm', keep_alive: 0 })

    expect(load.unloaded).toBeUndefined()
    expect(load.loaded?.(['ollama'])).toBeUndefined()
    expect(JSON.parse(text(load.loaded?.(['openai'])?.body ?? encode('')))).toMatchObject({
      model: 'm',
      message: { role: 'assistant', content: '' },
      done: true,
      done_reason: 'load',
    })
    expect(unload.loaded?.(['openai'])).toBeUndefined()
    expect(JSON.parse(text(unload.unloaded?.body ?? encode('')))).toMatchObject({ response: '', done_reason: 'unload' })
  })

  test.each([{ prompt: 'hi', keep_alive: 0 }, { keep_alive: '5m' }, {}])('%j does not unload', (body) => {
    expect(exchangeOf('/api/generate', { model: 'm', ...body }).unloaded).toBeUndefined()
  })

  test('a stream without usage still ends with durations', () => {
    const told = run(ollamaOnOpenai(), [
      encode('data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
    ])

    expect(JSON.parse(told.trim().split('\n').at(-1) ?? '')).toMatchObject({
      done: true,
      total_duration: 3_250_000_000,
      load_duration: 2_000_000_000,
      prompt_eval_duration: 250_000_000,
      eval_duration: 1_000_000_000,
    })
  })
})

describe('errors inside an answer', () => {
  const error = new RouterError('upstream_failed', 'The node broke off.')

  test('BL-W04 an OpenAI stream gets an event that stands alone after a half line, and no [DONE]', () => {
    const bytes = text(exchangeOf('/v1/chat/completions', { model: 'm', messages, stream: true }).inBandError(error))

    expect(bytes.startsWith('\n\ndata: {')).toBe(true)
    expect(bytes.endsWith('}\n\n')).toBe(true)
    expect(JSON.parse(bytes.trim().slice(6))).toMatchObject({
      error: { message: 'The node broke off.', type: 'server_error' },
      fleet: { code: 'upstream_failed', request_id: 'req_000000000001' },
    })
  })

  test('an Ollama stream gets a line that stands alone', () => {
    const bytes = text(exchangeOf('/api/chat', { model: 'm', messages }).inBandError(error))

    expect(bytes.startsWith('\n{')).toBe(true)
    expect(JSON.parse(bytes)).toMatchObject({ error: 'The node broke off.', fleet: { code: 'upstream_failed' } })
  })
})

describe("a node's own refusal", () => {
  const rejection = (client: string, node: 'openai' | 'ollama', body: string, status = 400) => {
    const exchange = exchangeOf(client, { model: 'asked', messages })
    const answer = exchange.rejection(
      exchange.request({ node: nodeOf(node), model: 'm', native: [node] }),
      status,
      encode(body),
    )
    return { ...answer, body: JSON.parse(text(answer.body)) }
  }

  test('between like dialects its own members stay', () => {
    const { status, body } = rejection(
      '/v1/chat/completions',
      'openai',
      '{"error":{"message":"no","type":"t","extra":1}}',
      422,
    )

    expect(status).toBe(422)
    expect(body).toMatchObject({ error: { message: 'no', type: 't', extra: 1 }, fleet: { code: 'upstream_rejected' } })
  })

  test('between unlike dialects status and message stay', () => {
    expect(rejection('/api/chat', 'openai', '{"error":{"message":"no"}}', 404)).toMatchObject({
      status: 404,
      body: { error: 'no' },
    })
    expect(rejection('/v1/chat/completions', 'ollama', '{"error":"no"}', 404)).toMatchObject({
      status: 404,
      body: { error: { message: 'no' } },
    })
  })

  test('a prompt that does not fit gets the code that OpenAI clients know', () => {
    const body = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":4096}}'

    expect(rejection('/v1/chat/completions', 'openai', body).body.error.code).toBe('context_length_exceeded')
  })

  test.each([
    "This model's maximum context length is 1024 tokens. However, your request has 4031 input tokens. Shorten it.",
    "This model's maximum context length is 1024 tokens. However, you requested 4031 tokens (4000 in the messages, 31 in the completion).",
    "This model's maximum context length is 1024 tokens. However, your messages resulted in 4031 tokens.",
  ])('vLLM says it in words alone, and all clients understand: %s', (message) => {
    const body = JSON.stringify({ error: { message, type: 'BadRequestError', param: null, code: 400 } })

    expect(rejection('/v1/chat/completions', 'openai', body).body.error).toEqual({
      message,
      type: 'invalid_request_error',
      param: null,
      code: 'context_length_exceeded',
    })
    expect(rejection('/v1/messages', 'openai', body).body.error.message).toBe(
      `prompt is too long: 4031 tokens > 1024 maximum. ${message}`,
    )
  })

  test('BL-S08 HTML never reaches the client', () => {
    const { body } = rejection('/v1/chat/completions', 'openai', '<html>Bad</html>')

    expect(JSON.stringify(body)).not.toContain('<html>')
    expect(body.error.message).toContain('400')
  })
})

test('ids and times come from the request alone', () => {
  const [first] = chunks(run(openaiOnOllama(), [encode(said({ content: 'a' }) + end('stop'))]))

  expect(first).toMatchObject({ id: 'chatcmpl-000000000001', created: arrivedAt / 1_000 })
})
