import { zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'bun:test'
import type { Bench } from '../../support/router'
import { type Json, kinds, quietly, rawClient } from '../clients'
import { until } from '../../support/fakes'
import { able, clientAt, type Event, eventsOf } from './wire'

const conversation = '22222222-3333-4444-8555-666666666666'
const model = 'gpt-oss:20b'

const client = ({ url }: Bench) =>
  clientAt(url, {
    authorization: 'Bearer unused',
    originator: 'codex_cli_rs',
    'user-agent': 'codex_cli_rs/0.99.0 (Linux; x86_64) xterm',
    version: '0.99.0',
    session_id: conversation,
    conversation_id: conversation,
  })

const streaming = { accept: 'text/event-stream' }
const said = (role: string, text: string) => ({ type: 'message', role, content: [{ type: 'input_text', text }] })
const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }

const turn = {
  model,
  instructions: 'Work on code.',
  input: [said('developer', 'Ask first.'), said('user', 'Where we are.'), said('user', 'Please call shell_command')],
  tools: [
    { type: 'function', name: 'shell_command', description: 'Runs it', strict: false, parameters },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Edits',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/' },
    },
    { type: 'namespace', name: 'mcp', description: 'More', tools: [{ type: 'function', name: 'look', parameters }] },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: conversation,
  text: { verbosity: 'low' },
  client_metadata: { turn: '1' },
}

/** The events as this client goes through them: what it drops or stumbles over fails here. */
const followed = (events: readonly Event[]) => {
  let open: Json
  let text = ''
  const items: Json[] = []
  for (const { data } of events) {
    if (data.type === 'response.output_item.added') open = data.item
    if (data.type === 'response.output_text.delta') {
      expect(open?.type).toBe('message')
      text += data.delta
    }
    if (data.type === 'response.output_item.done') items.push(data.item)
  }
  const completed = events.at(-1)?.data
  expect(events[0]?.data.type).toBe('response.created')
  expect(completed.type).toBe('response.completed')
  return { items, text, response: completed.response }
}

describe('with its own settings for local models it first looks', () => {
  test('at the version and the models of an Ollama', () =>
    quietly([able('ollama', model)], {}, async (bench) => {
      const { get } = client(bench)
      const { version } = (await (await get('/api/version')).json()) as Json
      const { models } = (await (await get('/api/tags')).json()) as Json

      // Older ones have no Responses endpoint, and it refuses them.
      expect(Bun.semver.satisfies(version, '>=0.13.4')).toBe(true)
      expect(models.map(({ name }: Json) => name)).toContain(model)
    }))

  test.each(kinds)('at the models of an LM Studio, and has one loaded by an empty question: %s', (kind) =>
    quietly([able(kind, model)], {}, async (bench) => {
      const { get, post } = client(bench)
      const { data } = (await (await get('/v1/models')).json()) as Json
      const loaded = await post('/v1/responses', { model, input: '', max_output_tokens: 1 })

      expect(data.map(({ id }: Json) => id)).toContain(model)
      expect(loaded.status).toBe(200)
    }),
  )
})

test('it may ask for the models with its version in the query', () =>
  quietly([able('llamacpp', model)], {}, async (bench) => {
    const answer = await client(bench).get('/v1/models?client_version=0.99.0')

    expect(answer.status).toBe(200)
    expect(((await answer.json()) as Json).data).toMatchObject([{ id: model }])
  }))

test('a socket for the same endpoint is refused in plain HTTP, and it falls back', () =>
  quietly([able('llamacpp', model)], {}, async (bench) => {
    const raw = await rawClient(bench.router.port)
    const upgrade = [
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAA',
    ]
    raw.socket.write(
      ['GET /v1/responses HTTP/1.1', `host: 127.0.0.1:${bench.router.port}`, ...upgrade, '', ''].join('\r\n'),
    )
    await until(() => raw.text().includes('\r\n\r\n'))
    raw.reset()

    expect(raw.text()).toStartWith('HTTP/1.1 405 ')
  }))

test('compacting is not offered, and said so in its form', () =>
  quietly([able('llamacpp', model)], {}, async (bench) => {
    const answer = await client(bench).post('/v1/responses/compact', { model, input: [], instructions: '' })

    expect(answer.status).toBe(404)
    expect(((await answer.json()) as Json).error.message).toBeString()
  }))

describe.each(kinds)('at %s', (kind) => {
  test('the first turn, compressed, streams a call of a tool as a whole item', () =>
    quietly([able(kind, model)], {}, async (bench) => {
      const packed = zstdCompressSync(JSON.stringify(turn))
      const encoded = { ...streaming, 'content-encoding': 'zstd' }

      const answer = await client(bench).postBytes('/v1/responses', packed, encoded)
      const { items, response } = followed(eventsOf(await answer.text()))
      const call = items.find(({ type }) => type === 'function_call')

      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
      expect(call).toMatchObject({ name: 'shell_command', call_id: expect.stringMatching(/./) })
      expect(JSON.parse(call.arguments)).toEqual({ command: 'sample' })
      expect(response).toMatchObject({
        id: expect.stringMatching(/./),
        model,
        usage: {
          input_tokens: expect.any(Number),
          input_tokens_details: { cached_tokens: expect.any(Number) },
          output_tokens: expect.any(Number),
          output_tokens_details: { reasoning_tokens: expect.any(Number) },
          total_tokens: expect.any(Number),
        },
      })
      const [arrived] = bench.of('request.arrived')
      expect(arrived?.job.session).toBe(conversation)
    }))

  test('a tool that takes free text is called with free text', () =>
    quietly([able(kind, model)], {}, async (bench) => {
      const input = [said('user', 'Please call apply_patch')]
      const answer = await client(bench).post('/v1/responses', { ...turn, input }, streaming)
      const { items } = followed(eventsOf(await answer.text()))

      expect(items.find(({ type }) => type === 'custom_tool_call')).toMatchObject({
        name: 'apply_patch',
        call_id: expect.stringMatching(/./),
        input: 'sample',
      })
    }))

  test('the turn after it, with all that was said and done, is answered in text', () =>
    quietly([able(kind, model)], {}, async (bench) => {
      const input = [
        ...turn.input,
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'A list.' }], encrypted_content: 'A list.' },
        { type: 'function_call', name: 'shell_command', arguments: '{"command":"ls"}', call_id: 'call_1' },
        { type: 'function_call_output', call_id: 'call_1', output: 'a.ts' },
        { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin', call_id: 'call_2', status: 'completed' },
        { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
        said('user', 'And now?'),
      ]

      const answer = await client(bench).post('/v1/responses', { ...turn, input }, streaming)
      const { text, items } = followed(eventsOf(await answer.text()))

      expect(answer.status).toBe(200)
      expect(text).not.toBe('')
      expect(items.findLast(({ type }) => type === 'message')?.content[0]).toMatchObject({ type: 'output_text', text })
    }))
})
