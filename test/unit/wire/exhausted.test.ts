import { describe, expect, test } from 'bun:test'
import type { NodeDialect } from '../../../src/wire/exchange'
import { exchangeOf, nodeOf, run, timing } from './golden'

const messages = [{ role: 'user', content: 'hi' }]
const sse = (json: object): string => `data: ${JSON.stringify(json)}\n\n`
const chunk = (delta: object, finish: string | null = null): string =>
  sse({ model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })
const openai = (finish: string, ...deltas: object[]): string =>
  `${chunk({ role: 'assistant', content: '' })}${deltas.map((delta) => chunk(delta)).join('')}${chunk({}, finish)}${sse({ model: 'm', choices: [], usage: { prompt_tokens: 1, completion_tokens: 9 } })}data: [DONE]\n\n`

const line = (json: object): string => `${JSON.stringify({ model: 'm', done: false, ...json })}\n`
const ollama = (reason: string, ...said: object[]): string =>
  `${said.map((message) => line({ message: { role: 'assistant', content: '', ...message } })).join('')}${line({ message: { role: 'assistant', content: '' }, done: true, done_reason: reason, total_duration: 1, eval_count: 9 })}`
const generated = (reason: string, ...said: object[]): string =>
  `${said.map((each) => line({ response: '', ...each })).join('')}${line({ response: '', done: true, done_reason: reason, total_duration: 1, eval_count: 9 })}`

const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const block = (index: number, start: object, ...deltas: object[]): string =>
  event('content_block_start', { index, content_block: start }) +
  deltas.map((delta) => event('content_block_delta', { index, delta })).join('') +
  event('content_block_stop', { index })
const anthropic = (reason: string, ...blocks: string[]): string =>
  `${event('message_start', { message: { model: 'm', usage: { input_tokens: 1 } } })}${blocks.join('')}${event('message_delta', { delta: { stop_reason: reason }, usage: { output_tokens: 9 } })}${event('message_stop', {})}`
const thought = block(
  0,
  { type: 'thinking', thinking: '' },
  { type: 'thinking_delta', thinking: 'hm' },
  { type: 'signature_delta', signature: '' },
)
const said = block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'hi' })
const called = block(1, { type: 'tool_use', id: 't', name: 'f', input: {} })

const call = { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }] }
const long = Array.from({ length: 100 }, () => ({ reasoning_content: 'a thought of some length' }))

const cases: [string, string, NodeDialect, string, boolean][] = [
  ['thoughts only', '/v1/chat/completions', 'openai', openai('length', { reasoning_content: 'hm' }), true],
  ['thoughts in their other field', '/v1/chat/completions', 'openai', openai('length', { reasoning: 'hm' }), true],
  ['long thoughts', '/v1/chat/completions', 'openai', openai('length', ...long), true],
  [
    'an answer that was cut',
    '/v1/chat/completions',
    'openai',
    openai('length', { reasoning: 'hm' }, { content: 'hi' }),
    false,
  ],
  ['a call that was cut', '/v1/chat/completions', 'openai', openai('length', { reasoning: 'hm' }, call), false],
  ['an answer without thoughts', '/v1/chat/completions', 'openai', openai('length', { content: 'hi' }), false],
  ['nothing at all', '/v1/chat/completions', 'openai', openai('length'), false],
  ['thoughts that ended by themselves', '/v1/chat/completions', 'openai', openai('stop', { reasoning: 'hm' }), false],
  ['a completion', '/v1/completions', 'openai', sse({ choices: [{ text: 'hi', finish_reason: 'length' }] }), false],
  ['thoughts only', '/api/chat', 'ollama', ollama('length', { thinking: 'hm' }), true],
  ['an answer that was cut', '/api/chat', 'ollama', ollama('length', { thinking: 'hm' }, { content: 'hi' }), false],
  ['a call', '/api/chat', 'ollama', ollama('length', { thinking: 'hm' }, { tool_calls: [{}] }), false],
  ['thoughts that ended by themselves', '/api/chat', 'ollama', ollama('stop', { thinking: 'hm' }), false],
  ['thoughts only', '/api/generate', 'ollama', generated('length', { thinking: 'hm' }), true],
  [
    'an answer that was cut',
    '/api/generate',
    'ollama',
    generated('length', { thinking: 'hm' }, { response: 'hi' }),
    false,
  ],
  ['thoughts only', '/v1/messages', 'anthropic', anthropic('max_tokens', thought), true],
  ['an answer that was cut', '/v1/messages', 'anthropic', anthropic('max_tokens', thought, said), false],
  ['a call that was cut', '/v1/messages', 'anthropic', anthropic('max_tokens', thought, called), false],
  ['thoughts that ended by themselves', '/v1/messages', 'anthropic', anthropic('end_turn', thought), false],
]

describe('a stream that passes through and ran out of tokens', () => {
  test.each(cases)('BL-P10 is told apart: %s on %s of %s', (_, path, node, body, exhausted) => {
    const prompt = path === '/v1/completions' || path === '/api/generate' ? { prompt: 'hi' } : { messages }
    const more = path.startsWith('/v1/') && node === 'openai' ? { stream_options: { include_usage: true } } : {}
    const exchange = exchangeOf(path, { model: 'm', stream: true, ...prompt, ...more })
    const native = node === 'anthropic' ? (['openai', node] as const) : [node]
    const reply = exchange.reply(exchange.request({ node: nodeOf(node), model: 'm', native }), 'm', timing())

    expect(run(reply, [new TextEncoder().encode(body)])).toBe(body)
    expect(reply.complete()).toBe(true)
    expect(reply.usage().thinkingExhausted ?? false).toBe(exhausted)
  })
})
