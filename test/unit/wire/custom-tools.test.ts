import { describe, expect, test } from 'bun:test'
import type { Exchange, NodeDialect } from '../../../src/wire/exchange'
import { cuts, exchangeOf, nodeOf, run, text, timing } from './golden'

const encode = (value: string): Uint8Array => new TextEncoder().encode(value)

const grammar = { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "x"' } }
const patch = { type: 'custom', custom: { name: 'apply_patch', description: 'Edits a file.', format: grammar } }
const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }
const messages = [{ role: 'user', content: 'hi' }]
const input = '*** Begin "Patch"\n+é\n'

const chat = (more: object = {}): Exchange =>
  exchangeOf('/v1/chat/completions', { model: 'm', messages, tools: [patch, weather], ...more })

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies whose shape is what they check
type Json = any

const requestTo = (exchange: Exchange, node: NodeDialect) =>
  exchange.request({ node: nodeOf(node), model: 'm', native: [node] })
const sentTo = (exchange: Exchange, node: NodeDialect): Json => JSON.parse(text(requestTo(exchange, node).body))

const line = (message: object, more: object = { done: false }): string =>
  `${JSON.stringify({ model: 'm', message: { role: 'assistant', content: '', ...message }, ...more })}\n`
const call = (name: string, given: object) => ({ function: { name, arguments: given } })
const end = { done: true, done_reason: 'stop', prompt_eval_count: 1, eval_count: 2 }

const answerOf = (exchange: Exchange, pieces: readonly Uint8Array[]): string =>
  run(exchange.reply(requestTo(exchange, 'ollama'), 'm', timing()), pieces)

describe('a custom tool on a node that speaks Ollama', () => {
  test('is offered as a function with one text, and told its grammar', () => {
    const { tools } = sentTo(chat(), 'ollama')

    expect(tools.map(({ function: { name } }: Json) => name)).toEqual(['apply_patch', 'weather'])
    expect(tools[0].function.parameters).toMatchObject({
      properties: { input: { type: 'string' } },
      required: ['input'],
    })
    expect(tools[0].function.description).toBe('Edits a file.\n\nThe input must match this lark grammar:\nstart: "x"')
  })

  test('has its earlier calls and their results in the conversation', () => {
    const turns = [
      ...messages,
      { role: 'assistant', tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'apply_patch', input } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
    ]
    const { messages: sent } = sentTo(chat({ messages: turns }), 'ollama')

    expect(sent[1].tool_calls[0].function).toMatchObject({ name: 'apply_patch', arguments: { input } })
    expect(sent[2]).toMatchObject({ role: 'tool', tool_name: 'apply_patch', content: 'done' })
  })

  test.each([
    [{ type: 'custom', custom: { name: 'apply_patch' } }],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'custom', custom: { name: 'apply_patch' } }] },
      },
    ],
  ])('can be the one that is chosen: %j', (choice) => {
    const { tools } = sentTo(chat({ tool_choice: choice }), 'ollama')

    expect(tools.map(({ function: { name } }: Json) => name)).toEqual(['apply_patch'])
  })

  test('is called by its own form in an answer in one piece', () => {
    const body = line({ tool_calls: [call('apply_patch', { input }), call('weather', { city: 'Rome' })] }, end)
    const { choices } = JSON.parse(answerOf(chat({ stream: false }), [encode(body)]))

    expect(choices[0].finish_reason).toBe('tool_calls')
    expect(choices[0].message.tool_calls).toEqual([
      { id: expect.any(String), type: 'custom', custom: { name: 'apply_patch', input } },
      { id: expect.any(String), type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
    ])
  })

  test('and in a stream, wherever its bytes are cut', () => {
    const body =
      line({ tool_calls: [call('apply_patch', { input })] }) +
      line({ tool_calls: [call('weather', {})] }) +
      line({}, end)

    for (const pieces of cuts(encode(body))) {
      const deltas: Json[] = answerOf(chat({ stream: true }), pieces)
        .split('\n\n')
        .filter((event) => event.startsWith('data: {'))
        .flatMap((event) => JSON.parse(event.slice('data: '.length)).choices[0])
      const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? [])

      expect(calls).toEqual([
        { index: 0, id: expect.any(String), type: 'custom', custom: { name: 'apply_patch', input: '' } },
        { index: 1, id: expect.any(String), type: 'function', function: { name: 'weather', arguments: '{}' } },
        { index: 0, custom: { input } },
      ])
      expect(deltas.at(-1)?.finish_reason).toBe('tool_calls')
    }
  })

  test('counts among what the model must be able to do', () => {
    expect(chat({ tools: [patch] }).job.needs).toEqual(['tools'])
  })
})

test('to a node that speaks OpenAI a custom tool goes as the client wrote it', () => {
  expect(sentTo(chat(), 'openai').tools).toEqual([patch, weather])
})
