import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RouterError } from '../../../src/domain/errors'
import { exchangeOf, nodeOf, text, timing } from './golden'

const path = '/v1/responses'
const encode = (value: string): Uint8Array => new TextEncoder().encode(value)

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
type Event = any

const eventsOf = (...pieces: (Uint8Array | undefined)[]): Event[] =>
  pieces
    .map(text)
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)))

describe('the first request of Codex', () => {
  const codex = {
    model: 'gpt-oss:20b',
    instructions: 'You are a coding agent.',
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: '<permissions>' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: '<environment_context>' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Fix the test.' }] },
    ],
    tools: [
      { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters: { type: 'object' } },
      {
        type: 'custom',
        name: 'apply_patch',
        description: 'Edits.',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: x' },
      },
      { type: 'web_search', external_web_access: false },
      {
        type: 'namespace',
        name: 'mcp__docs',
        description: 'Docs',
        tools: [{ type: 'function', name: 'find', parameters: { type: 'object' } }],
      },
    ],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    stream: true,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '0197-thread',
    text: { verbosity: 'medium' },
    client_metadata: { 'x-codex-installation-id': 'i' },
  }
  const call = (name: string, id: string, given: string) =>
    encode(
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ id, type: 'function', function: { name, arguments: given } }] } }] })}\n\n`,
    )

  test('reaches the engine as a chat of two roles with all of its tools', () => {
    const request = exchangeOf(path, codex).request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })
    const body = JSON.parse(text(request.body))

    expect(body.messages.map(({ role }: Event) => role)).toEqual(['system', 'user', 'user'])
    expect(body.tools.map((tool: Event) => tool.function.name)).toEqual([
      'exec_command',
      'apply_patch',
      'mcp__docs__find',
    ])
    expect(body).toMatchObject({ parallel_tool_calls: true, reasoning_effort: 'medium', tool_choice: 'auto' })
  })

  test('gets its calls back as it knows them, each item added before anything is said of it', () => {
    const exchange = exchangeOf(path, codex)
    const request = exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })
    const transform = exchange.reply(request, 'm', timing())
    const pieces = [
      call('exec_command', 'call_1', '{"cmd":"ls"}'),
      call('apply_patch', 'call_2', '{"input":"*** Begin Patch"}'),
      call('mcp__docs__find', 'call_3', '{}'),
      encode('data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'),
    ]
    const events = eventsOf(...pieces.map((piece) => transform.push(piece)))

    const { output, status } = events.at(-1).response
    expect(events.at(-1).type).toBe('response.completed')
    expect(status).toBe('completed')
    expect(output).toMatchObject([
      { type: 'function_call', call_id: 'call_1', name: 'exec_command', arguments: '{"cmd":"ls"}' },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Begin Patch' },
      { type: 'function_call', call_id: 'call_3', name: 'find', namespace: 'mcp__docs', arguments: '{}' },
    ])
    const known = new Set<string>()
    for (const { type, item, item_id: id } of events) {
      if (type === 'response.output_item.added') known.add(item.id)
      else if (id !== undefined) expect(known).toContain(id)
    }
  })

  test('and what it sends back next names the same tools to the engine', () => {
    const { input, ...rest } = codex
    const next = {
      ...rest,
      input: [
        ...input,
        { type: 'function_call', call_id: 'call_3', name: 'find', namespace: 'mcp__docs', arguments: '{}' },
        { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Begin Patch' },
        { type: 'function_call_output', call_id: 'call_3', output: 'found' },
        { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Done.' },
      ],
    }
    const request = exchangeOf(path, next).request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })
    const [, , , turn, ...results] = JSON.parse(text(request.body)).messages

    expect(turn.tool_calls.map((each: Event) => [each.id, each.function.name, each.function.arguments])).toEqual([
      ['call_3', 'mcp__docs__find', '{}'],
      ['call_2', 'apply_patch', '{"input":"*** Begin Patch"}'],
    ])
    expect(results.map((each: Event) => each.tool_call_id)).toEqual(['call_3', 'call_2'])
  })
})

describe('whatever a client sends', () => {
  const word = fc.constantFrom(
    'message',
    'function_call',
    'function_call_output',
    'reasoning',
    'custom',
    'function',
    'x',
  )
  const items = fc.array(
    fc.record(
      {
        type: fc.oneof(word, fc.jsonValue()),
        role: fc.oneof(fc.constantFrom('user', 'assistant', 'developer'), fc.jsonValue()),
        content: fc.oneof(fc.string(), fc.array(fc.record({ type: word, text: fc.jsonValue() })), fc.jsonValue()),
        call_id: fc.jsonValue(),
        name: fc.jsonValue(),
        arguments: fc.jsonValue(),
        output: fc.jsonValue(),
        summary: fc.jsonValue(),
        tools: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 5 },
  )
  const body = fc.record(
    {
      input: fc.oneof(items, fc.string(), fc.jsonValue()),
      instructions: fc.jsonValue(),
      tools: fc.oneof(items, fc.jsonValue()),
      tool_choice: fc.jsonValue(),
      text: fc.jsonValue(),
      reasoning: fc.jsonValue(),
      include: fc.jsonValue(),
      metadata: fc.jsonValue(),
    },
    { requiredKeys: ['input'] },
  )

  test('is carried out or refused with a reason, for every kind of node', () => {
    fc.assert(
      fc.property(body, fc.constantFrom('openai' as const, 'ollama' as const), (fields, kind) => {
        try {
          const exchange = exchangeOf(path, { model: 'm', stream: true, ...fields })
          const request = exchange.request({ node: nodeOf(kind), model: 'm', native: [kind] })
          expect(JSON.parse(text(request.body)).model).toBe('m')
        } catch (error) {
          expect(error).toBeInstanceOf(RouterError)
          expect((error as RouterError).code).toMatch(/^(invalid_request|not_supported|response_not_found)$/)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
