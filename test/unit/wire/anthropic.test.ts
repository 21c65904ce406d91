import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../../src/domain/errors'
import { RouterError } from '../../../src/domain/errors'
import type { Job } from '../../../src/domain/job'
import { readTokenQuestion } from '../../../src/wire/anthropic'
import { errorBody, errorResponse, errorStatus } from '../../../src/wire/errors'
import { arrivalOf, decodeArrival, exchangeOf, nodeOf, text, timing } from './golden'

const path = '/v1/messages'
const hi = [{ role: 'user', content: 'hi' }]
const bytes = (body: object): Uint8Array => new TextEncoder().encode(JSON.stringify(body))
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
const tool = { name: 'f', input_schema: { type: 'object' } }

const jobOf = (more: object, headers: Readonly<Record<string, string>> = {}): Job =>
  decodeArrival({ ...arrivalOf(path, bytes({ model: 'm', messages: hi, ...more })), headers: new Headers(headers) }).job

describe('the description of the request', () => {
  test('names its dialect, its endpoint and its model; it streams only when asked to', () => {
    expect(jobOf({})).toMatchObject({
      dialect: 'anthropic',
      operation: 'anthropic.messages',
      asked: 'm',
      stream: false,
      needs: [],
    })
    expect(jobOf({ stream: true }).stream).toBe(true)
  })

  test.each([
    ['pictures', { messages: [{ role: 'user', content: [image] }] }, ['vision']],
    [
      'pictures in results',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', content: [image] }] }] },
      ['vision'],
    ],
    ['tools', { tools: [tool] }, ['tools']],
    ['tools that only their host can run', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, []],
    // Coding agents ask every model to think; one that cannot must still be able to answer them.
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 2048 } }, []],
  ] as const)('needs what %s need', (_, more, needs) => {
    expect(jobOf(more).needs).toEqual([...needs])
  })

  test.each([
    ['text', 'x'.repeat(400)],
    ['blocks', [{ type: 'text', text: 'x'.repeat(400) }]],
    ['results', [{ type: 'tool_result', content: [{ type: 'text', text: 'x'.repeat(400) }] }]],
    ['calls', [{ type: 'tool_use', id: 't', name: 'f', input: { text: 'x'.repeat(389) } }]],
    ['documents', [{ type: 'document', source: { type: 'text', data: 'x'.repeat(376) } }]],
  ] as const)('counts %s', (_, content) => {
    expect(Math.abs(jobOf({ messages: [{ role: 'user', content }] }).promptTokens.value - 100)).toBeLessThanOrEqual(2)
  })

  test('counts system text and the schemas of tools, and each picture', () => {
    const plain = jobOf({}).promptTokens.value
    const schema = { ...tool, description: 'x'.repeat(4_000) }

    expect(jobOf({ system: 'x'.repeat(4_000) }).promptTokens.value - plain).toBe(1_000)
    expect(jobOf({ tools: [schema] }).promptTokens.value - plain).toBeGreaterThan(1_000)
    expect(jobOf({ messages: [{ role: 'user', content: [image, image] }] }).promptTokens.value).toBeGreaterThan(1_000)
  })
})

describe('the session', () => {
  test.each([
    [
      "Claude Code's header",
      { metadata: { user_id: 'user_ab_account__session_old' } },
      { 'x-claude-code-session-id': 'cc-1' },
      'cc-1',
    ],
    ['the older user id', { metadata: { user_id: 'user_ab_account_c_session_d-e' } }, {}, 'd-e'],
    ['the newer user id', { metadata: { user_id: '{"device_id":"a","session_id":"s-1"}' } }, {}, 's-1'],
  ])('is that of %s', (_, more, headers, session) => {
    expect(jobOf(more, headers).session).toBe(session)
  })

  test('of a user stays the same and does not tell who it is', () => {
    const { session } = jobOf({ metadata: { user_id: 'ann@host' } })

    expect(session).toMatch(/^user_[0-9a-f]{16}$/)
    expect(jobOf({ metadata: { user_id: 'ann@host' }, messages: [{ role: 'user', content: 'else' }] }).session).toBe(
      session,
    )
  })

  test('that the request names in our own header wins', () => {
    const arrival = arrivalOf(path, bytes({ model: 'm', messages: hi }), { session: 'mine' })

    expect(decodeArrival({ ...arrival, headers: new Headers({ 'x-claude-code-session-id': 'cc' }) }).job.session).toBe(
      'mine',
    )
  })

  test('without any is that of the conversation, whatever its billing header says', () => {
    const system = (value: string) => [
      { type: 'text', text: `x-anthropic-billing-header: cch=${value};` },
      { type: 'text', text: 'You are an agent.' },
    ]

    expect(jobOf({ system: system('1') }).session).toMatch(/^auto_/)
    expect(jobOf({ system: system('2') }).session).toBe(jobOf({ system: system('1') }).session ?? '')
    expect(jobOf({ system: [{ type: 'text', text: 'Other.' }] }).session).not.toBe(
      jobOf({ system: system('1') }).session,
    )
  })
})

describe('the billing header of Claude Code', () => {
  const header = { type: 'text', text: 'x-anthropic-billing-header: cc_version=2; cch=0;', cache_control: null }
  const quoted = { type: 'text', text: 'Say "x-anthropic-billing-header: a" twice.' }
  const body = bytes({ model: 'm', system: [header, quoted, header], messages: hi })
  const sentTo = (native: 'openai' | 'ollama' | 'anthropic', keepBillingHeader: boolean): string => {
    const exchange = decodeArrival({ ...arrivalOf(path, body), keepBillingHeader })
    const node = nodeOf(native)
    return text(
      exchange.request({ node, model: 'm', native: native === 'anthropic' ? ['openai', native] : [native] }).body,
    )
  }

  test.each(['openai', 'ollama', 'anthropic'] as const)(
    'reaches no node that speaks %s, and only it is gone',
    (native) => {
      expect(sentTo(native, false)).not.toContain('cc_version')
      expect(sentTo(native, false)).toContain('Say \\"x-anthropic-billing-header: a\\" twice.')
    },
  )

  test.each(['openai', 'ollama', 'anthropic'] as const)('reaches one that speaks %s when it is to stay', (native) => {
    expect(sentTo(native, true)).toContain('cc_version')
  })

  test('is counted where it was taken out', () => {
    expect(decodeArrival(arrivalOf(path, body)).job.billingHeaderRemoved).toBe(true)
    expect(
      decodeArrival({ ...arrivalOf(path, body), keepBillingHeader: true }).job.billingHeaderRemoved,
    ).toBeUndefined()
    expect(jobOf({ system: [quoted] }).billingHeaderRemoved).toBeUndefined()
  })

  test('leaves the bytes of everything else alone on the way to a node with the same protocol', () => {
    const odd = new TextEncoder().encode(
      `{ "messages":[{"role":"user","content":"h\\u0069"}] ,"system":[ ${JSON.stringify(header)} , {"type":"text", "text":"a"} ],"model":"m"}`,
    )
    const sent = exchangeOf(path, new TextDecoder().decode(odd)).request({
      node: nodeOf('anthropic'),
      model: 'm',
      native: ['openai', 'anthropic'],
    })

    expect(text(sent.body)).toBe(
      '{ "messages":[{"role":"user","content":"h\\u0069"}] ,"system":[{"type":"text", "text":"a"}],"model":"m"}',
    )
  })
})

describe('BL-P06 what is ahead of us', () => {
  test.each(['openai', 'ollama', 'anthropic'] as const)('never reaches a node that speaks %s as a flag', (native) => {
    const arrival = arrivalOf(path, bytes({ model: 'm', messages: hi, context_management: {}, made_up: 1 }))
    const exchange = decodeArrival({ ...arrival, headers: new Headers({ 'anthropic-beta': 'made-up-2027-01-01' }) })

    const sent = exchange.request({ node: nodeOf(native), model: 'm', native: ['openai', native] })

    expect(JSON.stringify(sent.headers)).not.toContain('made-up')
  })
})

describe('thinking', () => {
  const asked = (capabilities: readonly ('chat' | 'thinking')[] | undefined, native: 'openai' | 'ollama'): string =>
    text(
      exchangeOf(path, { model: 'm', messages: hi, thinking: { type: 'enabled', budget_tokens: 9_000 } }).request({
        node: nodeOf(native),
        model: 'm',
        native: [native],
        ...(capabilities && { capabilities }),
      }).body,
    )

  test.each(['openai', 'ollama'] as const)('is not asked of a model that is known not to think: %s', (native) => {
    expect(asked(['chat'], native)).not.toMatch(/think|reasoning/)
    expect(asked(['chat', 'thinking'], native)).toMatch(/think|reasoning/)
    expect(asked(undefined, native)).toMatch(/think|reasoning/)
  })
})

describe('the usage', () => {
  test.each([
    ['plain tokens', { input_tokens: 4, output_tokens: 0 }, { tokensIn: 4, tokensOut: 7 }],
    [
      'cached ones, which count as part of the prompt',
      { input_tokens: 4, cache_read_input_tokens: 90, cache_creation_input_tokens: 6, output_tokens: 0 },
      { tokensIn: 100, tokensOut: 7, cachedIn: 90 },
    ],
  ])('of a node with this protocol: %s', (_, usage, expected) => {
    const exchange = exchangeOf(path, { model: 'm', messages: hi, stream: true })
    const request = exchange.request({ node: nodeOf('anthropic'), model: 'm', native: ['openai', 'anthropic'] })
    const reply = exchange.reply(request, 'm', timing())
    const event = (type: string, more: object) => bytes({ type, ...more })
    const framed = (type: string, more: object) =>
      new Uint8Array([...new TextEncoder().encode(`event: ${type}\ndata: `), ...event(type, more), 0x0a, 0x0a])

    reply.push(framed('message_start', { message: { model: 'm', usage } }))
    // Longer than what is remembered of an answer's end.
    reply.push(framed('content_block_delta', { delta: { type: 'text_delta', text: 'x'.repeat(9_000) } }))
    reply.push(framed('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }))
    expect(reply.complete()).toBe(false)
    reply.push(framed('message_stop', {}))

    expect(reply.complete()).toBe(true)
    expect(reply.usage()).toEqual(expected)
  })
})

describe('BL-P10 an answer that ran out of tokens while it was thinking', () => {
  const whole = (message: object, finish: string) => ({ choices: [{ index: 0, message, finish_reason: finish }] })
  const ofOllama = (message: object, reason: string) => ({ message, done: true, done_reason: reason })
  const blocks = (content: object[], reason: string) => ({ type: 'message', content, stop_reason: reason })
  const thought = { type: 'thinking', thinking: 'hm', signature: '' }
  const cases = [
    ['/v1/messages', 'openai', whole({ reasoning_content: 'hm', content: '' }, 'length'), true],
    ['/v1/messages', 'openai', whole({ reasoning_content: 'hm', content: 'a' }, 'length'), false],
    ['/v1/messages', 'openai', whole({ reasoning_content: 'hm', content: '' }, 'stop'), false],
    ['/v1/messages', 'ollama', ofOllama({ thinking: 'hm', content: '' }, 'length'), true],
    ['/v1/messages', 'anthropic', blocks([thought], 'max_tokens'), true],
    ['/v1/messages', 'anthropic', blocks([thought, { type: 'text', text: 'a' }], 'max_tokens'), false],
    ['/v1/chat/completions', 'openai', whole({ reasoning: 'hm', content: null }, 'length'), true],
    ['/v1/chat/completions', 'openai', whole({ content: 'a' }, 'length'), false],
    ['/v1/chat/completions', 'openai', whole({ reasoning: 'hm', tool_calls: [{}] }, 'length'), false],
    ['/api/chat', 'ollama', ofOllama({ thinking: 'hm', content: '' }, 'length'), true],
    ['/api/chat', 'ollama', ofOllama({ thinking: 'hm', content: 'a' }, 'length'), false],
  ] as const

  test.each(cases)('is told apart: %s from a node that speaks %s', (asked, node, answer, exhausted) => {
    const exchange = exchangeOf(asked, { model: 'm', messages: hi, stream: false })
    const native = node === 'anthropic' ? (['openai', node] as const) : [node]
    const reply = exchange.reply(exchange.request({ node: nodeOf(node), model: 'm', native }), 'm', timing())

    reply.push(bytes(answer))
    reply.end()

    expect(reply.complete()).toBe(true)
    expect(reply.usage().thinkingExhausted ?? false).toBe(exhausted)
  })
})

describe('keeping a waiting client', () => {
  test('costs a ping where it streams, and nothing where it does not', () => {
    const keepAlive = exchangeOf(path, { model: 'm', messages: hi, stream: true }).keepAlive

    expect(text(keepAlive?.())).toBe('event: ping\ndata: {"type":"ping"}\n\n')
    expect(exchangeOf(path, { model: 'm', messages: hi }).keepAlive).toBeUndefined()
  })
})

describe('errors', () => {
  test.each([
    ['invalid_request', 400, 'invalid_request_error'],
    ['not_supported', 400, 'invalid_request_error'],
    ['unauthorized', 401, 'authentication_error'],
    ['forbidden', 403, 'permission_error'],
    ['not_found', 404, 'not_found_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['method_not_allowed', 405, 'invalid_request_error'],
    ['request_too_large', 413, 'request_too_large'],
    ['queue_full', 429, 'rate_limit_error'],
    ['client_disconnected', 499, 'invalid_request_error'],
    ['internal', 500, 'api_error'],
    ['upstream_failed', 502, 'api_error'],
    ['no_capacity', 529, 'overloaded_error'],
    ['draining', 529, 'overloaded_error'],
    ['upstream_timeout', 504, 'timeout_error'],
    ['deadline_exceeded', 504, 'timeout_error'],
    ['loop_detected', 508, 'api_error'],
  ] as const satisfies readonly (readonly [ErrorCode, number, string])[])('%s is %p %s', async (code, status, type) => {
    const response = errorResponse('anthropic', new RouterError(code, 'Why.', { requestId: 'req_1', hint: 'Do this.' }))

    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({
      type: 'error',
      error: { type, message: 'Why.' },
      request_id: 'req_1',
      fleet: { code, request_id: 'req_1', message: 'Why.', nodes: [], hint: 'Do this.' },
    })
  })

  test('a prompt that is too long is told in the words that clients act on', () => {
    const error = new RouterError('context_too_large', 'It does not fit.', { tokens: { need: 4031, have: 1024 } })

    expect(errorStatus(error, 'anthropic')).toBe(400)
    expect(errorBody('anthropic', error).error).toEqual({
      type: 'invalid_request_error',
      message: 'prompt is too long: 4031 tokens > 1024 maximum. It does not fit.',
    })
    expect(errorBody('openai', error).error).toMatchObject({
      message: "This model's maximum context length is 1024 tokens, this request needs 4031. It does not fit.",
    })
    expect(errorBody('ollama', error).error).toBe('It does not fit.')
  })

  const exchange = exchangeOf(path, { model: 'm', messages: hi })
  const request = exchange.request({ node: nodeOf('anthropic'), model: 'm', native: ['openai', 'anthropic'] })

  test("llama-server's own words for that are understood, numbers included", () => {
    const said = {
      error: { code: 400, message: 'too big', type: 'exceed_context_size_error', n_prompt_tokens: 9, n_ctx: 8 },
    }
    const { status, body } = exchange.rejection(request, 400, bytes(said))

    expect([status, JSON.parse(text(body)).error.message]).toEqual([
      400,
      'prompt is too long: 9 tokens > 8 maximum. too big',
    ])
  })

  test.each([
    [422, 'invalid_request_error'],
    [413, 'request_too_large'],
    [404, 'not_found_error'],
  ])("a node's own %p comes in this protocol's shape, with the node's words", (given, type) => {
    const { status, body } = exchange.rejection(request, given, bytes({ error: { message: 'no such thing' } }))

    expect(status).toBe(given)
    expect(JSON.parse(text(body))).toMatchObject({ type: 'error', error: { type, message: 'no such thing' } })
  })
})

describe('counting tokens', () => {
  test('needs no answer length and knows what the endpoint itself would count', () => {
    const body = { model: 'm', system: 'x'.repeat(396), messages: hi, tools: [tool] }

    expect(readTokenQuestion(bytes(body)).estimate).toBe(jobOf(body).promptTokens.value)
    expect(readTokenQuestion(bytes(body)).estimate).toBeGreaterThan(100)
  })

  test('an engine is asked what it would be asked to answer: its own name for the model, no billing header', () => {
    const billing = { type: 'text', text: 'x-anthropic-billing-header: cc_version=1; cch=2;' }
    const system = [billing, { type: 'text', text: 'Be short.' }]
    const ask = (options = {}) => readTokenQuestion(bytes({ model: 'claude', system, messages: hi }), options).prompt

    expect(ask()?.anthropic?.('m')).toEqual({ model: 'm', system: system.slice(1), messages: hi })
    expect(ask()?.chat('m')).toMatchObject({ model: 'm', messages: [{ role: 'system', content: 'Be short.' }, ...hi] })
    expect(ask({ keepBillingHeader: true })?.anthropic?.('m')).toMatchObject({ system })
    expect(JSON.stringify(ask({ keepBillingHeader: true })?.chat('m'))).toContain('cc_version')
  })

  test('no engine is asked about pictures', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: [image] }] }

    expect(readTokenQuestion(bytes(body)).prompt).toBeUndefined()
  })

  test.each([[{}], [{ model: 'm' }], [{ model: 'm', messages: [] }], [{ model: 'm', messages: 'hi' }]])(
    'refuses %p',
    (body) => {
      expect(() => readTokenQuestion(bytes(body))).toThrow(RouterError)
    },
  )
})

test('parts that hold parts are read without end, but not in depth without end', () => {
  const depth = 20_000
  const nested = `${'{"type":"tool_result","content":['.repeat(depth)}${']}'.repeat(depth)}`

  expect(() => exchangeOf(path, `{"model":"m","messages":[{"role":"user","content":[${nested}]}]}`)).toThrow(
    RouterError,
  )
})
