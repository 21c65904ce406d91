import { createHash } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { fastModel, type FakeSpec, until } from '../support/fakes'
import { answer, chunk, LAST_CHUNK, startRawServer } from '../support/raw-server'
import type { Bench } from '../support/router'
import { asked, type Json, kinds, quietly, rawClient, settledRecord } from './clients'

const able = fastModel('m', { capabilities: ['chat', 'completion', 'tools', 'thinking'] })
const hot = (kind: FakeSpec['kind'], more: object = {}): FakeSpec => ({
  kind,
  resident: ['m'],
  models: [fastModel()],
  ...more,
})

const post = (bench: Bench, body: object | Uint8Array, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${bench.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: body instanceof Uint8Array ? body : JSON.stringify(body),
  })

/** What the first engine was asked, the `index`-th time. */
const sentTo = (bench: Bench, index = 0): { readonly path: string; readonly body: Json } => {
  const request = asked(bench.fakes[0] as never)[index]
  if (request === undefined) throw new Error('the engine was not asked')
  return { path: request.path, body: request.body }
}

const clientOf = (bench: Bench): OpenAI => new OpenAI({ baseURL: `${bench.url}/v1`, apiKey: 'unused', maxRetries: 0 })

const weather = {
  type: 'function' as const,
  name: 'weather',
  description: 'Weather of a city',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('the OpenAI client', () => {
  test.each(kinds)('gets whole responses from %s', (kind) =>
    quietly([hot(kind, { answer: () => 'one two three' })], {}, async (bench) => {
      const response = await clientOf(bench).responses.create({ model: 'm', input: 'hi', instructions: 'Be brief.' })

      expect(response.output_text).toBe('one two three')
      expect(response).toMatchObject({ status: 'completed', model: 'm', instructions: 'Be brief.', error: null })
      expect(response.usage?.output_tokens).toBe(3)
      expect((await settledRecord(bench)).asked).toMatchObject({ operation: 'openai.responses', dialect: 'openai' })
    }),
  )

  test.each(kinds)('gathers streams from %s: its own sum of the events is the final response', (kind) =>
    quietly([hot(kind, { models: [able], answer: () => 'one two three' })], {}, async (bench) => {
      const stream = clientOf(bench).responses.stream({ model: 'm', input: 'hi' })
      const numbers: number[] = []
      let text = ''
      for await (const event of stream) {
        numbers.push(event.sequence_number)
        if (event.type === 'response.output_text.delta') text += event.delta
      }
      const response = await stream.finalResponse()

      expect(text).toBe('one two three')
      expect(response.output_text).toBe(text)
      expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
      expect(numbers).toEqual(numbers.map((_, index) => index))
      expect(response.usage?.total_tokens).toBeGreaterThan(3)
    }),
  )

  test.each(kinds)('has its tools called by %s and sends the results back', (kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const client = clientOf(bench)
      const stream = client.responses.stream({ model: 'm', input: 'call weather', tools: [weather] })
      const first = await stream.finalResponse()
      const [call] = first.output
      if (call?.type !== 'function_call') throw new Error('no call')
      const second = await client.responses.create({
        model: 'm',
        input: [
          { role: 'user', content: 'call weather' },
          { type: 'function_call', call_id: call.call_id, name: call.name, arguments: call.arguments },
          { type: 'function_call_output', call_id: call.call_id, output: 'rain' },
        ],
        tools: [weather],
      })

      expect(call).toMatchObject({ name: 'weather', arguments: '{"city":"sample"}', status: 'completed' })
      expect(second.output_text).not.toBe('')
      const sent = sentTo(bench, 1).body
      expect(sent.messages[1].tool_calls[0].id).toBe(call.call_id)
      expect(sent.messages[2]).toMatchObject({ role: 'tool', content: 'rain', tool_call_id: call.call_id })
    }),
  )

  test.each(kinds)('gets JSON of its schema from %s', (kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const response = await clientOf(bench).responses.create({
        model: 'm',
        input: 'hi',
        text: { format: { type: 'json_schema', name: 'city', schema: weather.parameters, strict: true } },
      })

      expect(JSON.parse(response.output_text)).toEqual({ city: 'sample' })
    }),
  )

  test.each(kinds)('is told when the limit cut the answer of %s short', (kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const response = await clientOf(bench).responses.create({ model: 'm', input: 'hi', max_output_tokens: 2 })

      expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    }),
  )

  test('leaves, and the engine stops', () =>
    quietly([hot('ollama', { models: [fastModel('m', { decodePerSecond: 20 })] })], {}, async (bench) => {
      for await (const event of await clientOf(bench).responses.create({ model: 'm', input: 'hi', stream: true }))
        if (event.type === 'response.output_text.delta') break

      await until(() => bench.fakes[0]?.running() === 0)
      expect((await settledRecord(bench)).outcome?.end).toBe('client_disconnected')
    }))

  test.each(kinds)('completes prompts as they stand on %s', (kind) =>
    quietly([hot(kind, { answer: () => 'one two' })], {}, async (bench) => {
      const client = clientOf(bench)
      const whole = await client.completions.create({ model: 'm', prompt: 'Once' })
      const chunks = await Array.fromAsync(
        await client.completions.create({
          model: 'm',
          prompt: 'Once',
          stream: true,
          stream_options: { include_usage: true },
        }),
      )

      expect(whole.choices[0]).toMatchObject({ text: 'one two', finish_reason: 'stop' })
      expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe('one two')
      expect(chunks.at(-1)?.usage?.completion_tokens).toBe(2)
      const { path, body } = sentTo(bench)
      expect(path).toBe(kind === 'ollama' ? '/api/generate' : '/v1/completions')
      expect(body.prompt).toBe('Once')
    }),
  )
})

describe('what only a server with a memory has', () => {
  test('BL-P09 a follow-up on a response that nobody kept is 404 and says so, while its node is busy and when it is gone', () =>
    quietly([hot('ollama', { models: [fastModel('m', { decodePerSecond: 20 })] })], {}, async (bench) => {
      const first = (await (await post(bench, { model: 'm', input: 'hi', max_output_tokens: 1 })).json()) as Json
      const leaving = new AbortController()
      const busy = bench.chat({ signal: leaving.signal })
      await until(() => bench.fakes[0]?.running() === 1)

      const ask = () => post(bench, { model: 'm', input: 'and?', previous_response_id: first.id, stream: true })
      const answers = [await ask()]
      bench.fakes[0]?.faults.add({ type: 'refuse' })
      answers.push(await ask())
      leaving.abort()
      await busy.catch(() => {})

      for (const reply of answers) {
        expect(reply.status).toBe(404)
        expect(reply.headers.get('x-should-retry')).toBe('false')
        const { error, fleet } = (await reply.json()) as Json
        expect(error).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
        expect(error.message).toContain('this router keeps no responses')
        expect(fleet.hint).toContain('whole conversation')
      }
      expect(asked(bench.fakes[0] as never)).toHaveLength(2)
    }))

  test.each([
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/v1/responses/resp_1?stream=true&starting_after=3'],
    ['GET', '/v1/responses/resp_1/input_items'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['POST', '/v1/responses/input_tokens'],
    ['POST', '/v1/responses/compact'],
  ])('%s %s is 404', (method, path) =>
    quietly([hot('ollama')], {}, async (bench) => {
      const reply = await fetch(`${bench.url}${path}`, { method })

      expect(reply.status).toBe(404)
      expect(((await reply.json()) as Json).error.message).toContain('keeps no responses')
    }),
  )

  test('a WebSocket is refused with a plain answer, and the next request on the connection is served', () =>
    quietly([hot('ollama')], {}, async (bench) => {
      const client = await rawClient(Number(new URL(bench.url).port))
      client.socket.write(
        'GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n' +
          'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
      await until(() => client.text().includes('method_not_allowed'))
      client.post('/v1/responses', { model: 'm', input: 'hi' })
      await until(() => client.text().includes('"status":"completed"'))

      expect(client.text()).toStartWith('HTTP/1.1 405 ')
      expect(client.text()).not.toContain('101 Switching')
      client.socket.destroy()
    }))
})

describe('what a client sends', () => {
  const large = JSON.stringify({ model: 'm', input: 'hi', instructions: 'x'.repeat(100_000) })

  test.each([
    ['zstd', zstdCompressSync(large)],
    ['gzip', gzipSync(large)],
  ])('may be packed with %s', (encoding, body) =>
    quietly([hot('llamacpp', { models: [fastModel('m', { contextTokens: 100_000 })] })], {}, async (bench) => {
      const reply = await post(bench, new Uint8Array(body), { 'content-encoding': encoding })

      expect(((await reply.json()) as Json).status).toBe('completed')
      expect(sentTo(bench).body.messages[0].content).toHaveLength(100_000)
    }),
  )

  test.each(['llamacpp', 'ollama'] as const)(
    'BL-M02 a picture for a model that cannot see is 400 before anything reaches %s',
    (kind) =>
      quietly([hot(kind)], {}, async (bench) => {
        const picture = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' }
        const reply = await post(bench, { model: 'm', input: [{ role: 'user', content: [picture] }] })

        expect(reply.status).toBe(400)
        expect(((await reply.json()) as Json).error.message).toMatch(/vision|picture|image/i)
        expect(asked(bench.fakes[0] as never)).toEqual([])
      }),
  )

  test.each(kinds)('names a model as %s does not, and reads its own spelling in the answer', (kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const body = await (await post(bench, { model: 'M:latest', input: 'hi', stream: true })).text()

      expect(new Set(body.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"M:latest"']))
      expect(sentTo(bench).body.model).toMatch(/^m(:latest)?$/)
    }),
  )
})

test('BL-S04 a chat stream of a node passes byte for byte: ids, names, comments, line ends, data of several lines', async () => {
  const models = JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] })
  const pieces = [
    ': hello\r\n\r\n',
    'id: 1\r\nevent: message\r\ndata: {"model":"m","choices":[{"index":0,\r\ndata: "delta":{"content":"a"}}]}\r\n\r\n',
    ': ping\n\n',
    'retry: 5\nid: 2\ndata:{"model":"m","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\n\n',
    'data: [DONE]\r\n\r\n',
  ]
  const engine = startRawServer((connection, { head }) => {
    if (head.startsWith('GET /v1/models')) return connection.send(answer(models))
    if (head.startsWith('GET')) return connection.send(answer('{}'))
    connection.send('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
    for (const piece of pieces) connection.send(chunk(piece))
    connection.send(LAST_CHUNK)
  })
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

  await quietly([{ kind: 'openai' }], { describe: () => ({ kind: 'openai', url: engine.url }) }, async (bench) => {
    const reply = await bench.chat({ more: { stream_options: { include_usage: true } } })

    expect(hash(await reply.text())).toBe(hash(pieces.join('')))
    expect((await settledRecord(bench)).outcome?.end).toBe('completed')
  })
  engine.stop()
})
