import { describe, expect, test } from 'bun:test'
import type { Bench } from '../../support/router'
import { asked, type Json, kinds, quietly } from '../clients'
import { able, clientAt, type Event, eventsOf, withAliases } from './wire'

/** Its tiers are names of Anthropic's; an alias that is no pattern is also offered in the list. */
const setup = withAliases([
  { name: 'claude-local', models: ['m'], acrossKinds: false },
  { name: 'claude-*', models: ['m'], acrossKinds: false },
])

const session = '11111111-2222-4333-8444-555555555555'
const headers = {
  accept: 'application/json',
  authorization: 'Bearer unused',
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
  'anthropic-dangerous-direct-browser-access': 'true',
  'user-agent': 'claude-cli/2.1.126 (external, cli)',
  'x-app': 'cli',
  'x-claude-code-session-id': session,
  'x-stainless-lang': 'js',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
}

const client = ({ url }: Bench) => clientAt(url, headers)
const ephemeral = { cache_control: { type: 'ephemeral' } }
const billing = { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.126; cc_entrypoint=cli; cch=0a1b2;' }

const tools = ['Read', 'Bash'].map((name) => ({
  name,
  description: `The tool ${name}`,
  input_schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
  eager_input_streaming: true,
}))

const turn = {
  model: 'claude-opus-4-9',
  max_tokens: 32_000,
  stream: true,
  system: [billing, { type: 'text', text: 'Work on code.', ...ephemeral }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Where we are.' },
        { type: 'text', text: 'Please call Read', ...ephemeral },
      ],
    },
  ],
  tools,
  metadata: { user_id: `user_0_account__session_${session}` },
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
}

const typesOf = (events: readonly Event[]): readonly string[] => events.map(({ data }) => data.type)
const last = (events: readonly Event[], type: string): Json => events.findLast(({ data }) => data.type === type)?.data

test('before anything else: its look at the address, the gateway model list, one token to see that it may', () =>
  quietly([able('llamacpp')], setup, async (bench) => {
    const { head, get, post } = client(bench)
    const quota = { model: 'claude-haiku-4-9', max_tokens: 1, messages: [{ role: 'user', content: 'quota' }] }

    expect((await head('/')).status).toBe(200)
    const list = await get('/v1/models?limit=1000')
    const { data, has_more } = (await list.json()) as Json
    const probe = await post('/v1/messages?beta=true', { ...quota, metadata: turn.metadata })

    expect(list.headers.get('content-type')).toStartWith('application/json')
    // It offers only what begins with its own name.
    expect(data.filter(({ id }: Json) => /^(claude|anthropic)/.test(id))).toMatchObject([
      { type: 'model', id: 'claude-local', display_name: 'claude-local', created_at: expect.any(String) },
    ])
    expect(has_more).toBe(false)
    expect(probe.status).toBe(200)
    expect(probe.headers.get('request-id')).toBeString()
    expect((await probe.json()) as Json).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'claude-haiku-4-9',
      stop_reason: 'max_tokens',
      usage: { input_tokens: expect.any(Number), output_tokens: 1 },
    })
  }))

describe('the counts of tokens with which its editor begins', () => {
  const counts = (bench: Bench) => {
    const { messages, system } = turn
    const each = tools.map((tool) => ({ model: turn.model, messages, system, tools: [tool], thinking: turn.thinking }))
    return Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        client(bench).post('/v1/messages/count_tokens?beta=true', each[index % each.length] as object),
      ),
    )
  }

  test('are the engine’s own where it can count; they are no requests of the fleet', () =>
    quietly([able('llamacpp')], setup, async (bench) => {
      const answers = await counts(bench)

      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      for (const answer of answers) {
        expect(answer.headers.get('x-fleet-tokens')).toBe('counted')
        expect(answer.headers.get('x-fleet-node')).toBe('a')
        expect(((await answer.json()) as Json).input_tokens).toBePositive()
      }
      expect(bench.of('request.arrived')).toEqual([])
    }))

  test('are estimates elsewhere, and bring no model into memory', () =>
    quietly([able('ollama', 'm', { resident: [] })], setup, async (bench) => {
      const answers = await counts(bench)

      for (const answer of answers) {
        expect(answer.headers.get('x-fleet-tokens')).toBe('estimated')
        expect(((await answer.json()) as Json).input_tokens).toBePositive()
      }
      expect(bench.fakes[0]?.loads).toEqual([])
    }))
})

describe.each(kinds)('at %s', (kind) => {
  test('the title of the conversation is the JSON that it asks for, while the first turn runs', () =>
    quietly([able(kind)], setup, async (bench) => {
      const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }
      const title = {
        model: 'claude-haiku-4-9',
        max_tokens: 32_000,
        stream: true,
        temperature: 1,
        system: [billing, { type: 'text', text: 'Name this.' }],
        messages: [{ role: 'user', content: 'Please call Read' }],
        tools: [],
        metadata: turn.metadata,
        output_config: { format: { type: 'json_schema', schema } },
      }
      const { post } = client(bench)

      const [named, answered] = await Promise.all([
        post('/v1/messages?beta=true', title),
        post('/v1/messages?beta=true', turn),
      ])
      const text = eventsOf(await named.text())
        .map(({ data }) => data.delta?.text ?? '')
        .join('')

      expect(named.status).toBe(200)
      expect(JSON.parse(text)).toEqual({ title: expect.any(String) })
      expect(eventsOf(await answered.text()).at(-1)?.name).toBe('message_stop')
    }))

  test('the first turn streams thinking and a call of a tool, one block after the other', () =>
    quietly([able(kind)], setup, async (bench) => {
      const answer = await client(bench).post('/v1/messages?beta=true', turn)
      const events = eventsOf(await answer.text()).filter(({ data }) => data.type !== 'ping')
      const blocks = events.filter(({ data }) => data.type === 'content_block_start').map(({ data }) => data)
      const call = blocks.find(({ content_block }) => content_block.type === 'tool_use')
      const input = events
        .filter(({ data }) => data.delta?.type === 'input_json_delta' && data.index === call?.index)
        .map(({ data }) => data.delta.partial_json)
        .join('')

      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
      expect(events.every(({ name, data }) => name === data.type)).toBe(true)
      expect(events[0]?.data.message).toMatchObject({
        id: expect.stringMatching(/./),
        role: 'assistant',
        model: turn.model,
        content: [],
        usage: { input_tokens: expect.any(Number) },
      })
      expect(blocks.map(({ index }) => index)).toEqual(blocks.map((_, index) => index))
      expect(typesOf(events).filter((type) => type === 'content_block_stop')).toHaveLength(blocks.length)
      expect(call?.content_block).toMatchObject({ name: 'Read', input: {}, id: expect.stringMatching(/./) })
      expect(JSON.parse(input)).toEqual({ path: 'sample' })
      expect(last(events, 'message_delta')).toMatchObject({ delta: { stop_reason: 'tool_use' } })
      expect(last(events, 'message_delta').usage.output_tokens).toBePositive()
      expect(typesOf(events).at(-1)).toBe('message_stop')
      expect(JSON.stringify(asked(bench.fakes[0] as never)[0]?.body)).not.toContain('cc_version')
    }))

  test('the turn after it, with the result of the tool and a word of the system between, is answered in text', () =>
    quietly([able(kind)], setup, async (bench) => {
      const messages = [
        ...turn.messages,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'A file.', signature: '' },
            { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { path: 'a.ts' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: '1' }], ...ephemeral },
          ],
        },
        { role: 'system', content: 'The plan has changed.' },
        { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
      ]

      const answer = await client(bench).post('/v1/messages?beta=true', { ...turn, messages })
      const events = eventsOf(await answer.text())

      expect(answer.status).toBe(200)
      expect(last(events, 'message_delta').delta.stop_reason).toBe('end_turn')
      expect(events.some(({ data }) => data.delta?.type === 'text_delta')).toBe(true)
    }))

  test('the end of a stream tells the tokens of the prompt as the engine counted them', () =>
    quietly([able(kind)], setup, async (bench) => {
      const { post } = client(bench)
      const whole = (await (await post('/v1/messages', { ...turn, stream: false })).json()) as Json

      const events = eventsOf(await (await post('/v1/messages', turn)).text())
      const begun = events[0]?.data.message.usage
      const ended = last(events, 'message_delta').usage

      expect({ ...begun, ...ended }.input_tokens).toBe(whole.usage.input_tokens)
      expect(ended.output_tokens).toBe(whole.usage.output_tokens)
    }))
})
