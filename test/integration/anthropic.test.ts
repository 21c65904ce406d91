import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { type FakeSpec, fastModel, slowModel, until } from '../support/fakes'
import type { Bench } from '../support/router'
import { anthropicMessages, ask, asked, type Json, quietly, settledRecord } from './clients'

const kinds = ['llamacpp', 'ollama', 'openai'] as const

/** A fake whose model is in memory and can do what is needed here. */
const hot = (kind: FakeSpec['kind'], more: Partial<FakeSpec> = {}): FakeSpec => ({
  kind,
  resident: ['m'],
  models: [fastModel('m', { capabilities: ['chat', 'completion', 'tools', 'thinking'] })],
  ...more,
})

const clientOf = ({ url }: Bench, maxRetries = 0): Anthropic =>
  new Anthropic({ baseURL: url, apiKey: 'none', maxRetries })

const say = (content: string) => ({ model: 'm', max_tokens: 64, messages: [{ role: 'user' as const, content }] })
const tool = (name: string) => ({
  name,
  input_schema: { type: 'object' as const, properties: { zone: { type: 'string' } } },
})

const failureOf = async (promise: PromiseLike<unknown>): Promise<Json> => {
  try {
    return await promise
  } catch (error) {
    return error
  }
}

describe.each(kinds)('the Anthropic SDK and a node of kind %s', (kind) => {
  test('a message in one piece', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const { data, request_id, response } = await clientOf(bench).messages.create(say('hello')).withResponse()

      const [thinking, text] = data.content
      expect(thinking).toMatchObject({ type: 'thinking', signature: '' })
      expect(text).toMatchObject({ type: 'text', text: expect.stringMatching(/^tok1\.\w+ tok2.* tok16\.\w+$/) })
      expect(data).toMatchObject({ role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null })
      expect(data.usage.input_tokens).toBeGreaterThan(0)
      expect(data.usage.output_tokens).toBe(22)
      const record = await settledRecord(bench)
      expect([request_id, response.headers.get('x-fleet-node')]).toEqual([record.id, 'a'])
      expect(record.asked).toMatchObject({ dialect: 'anthropic', operation: 'anthropic.messages' })
      expect(record.outcome).toMatchObject({ end: 'completed', tokensOut: 22 })
    }))

  test('a stream with thinking and two parallel tools', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const stream = clientOf(bench).messages.stream({
        ...say('call now and call later'),
        tools: [tool('now'), tool('later')],
        thinking: { type: 'enabled', budget_tokens: 1_024 },
      })
      const indexes: number[] = []
      stream.on('streamEvent', (event) => {
        if (event.type === 'content_block_start') indexes.push(event.index)
        if (event.type === 'message_start') expect(event.message.usage.input_tokens).toBeNumber()
      })

      const { content, stop_reason, usage } = await stream.finalMessage()

      expect(indexes).toEqual([0, 1, 2])
      expect(content).toMatchObject([
        { type: 'thinking' },
        { type: 'tool_use', name: 'now', input: { zone: 'sample' } },
        { type: 'tool_use', name: 'later', input: { zone: 'sample' } },
      ])
      expect(stop_reason).toBe('tool_use')
      expect(usage.output_tokens).toBe(8)
    }))

  test('BL-D01 a client that leaves frees the node within a second', () =>
    quietly([hot(kind, { models: [slowModel()] })], {}, async (bench) => {
      const stream = clientOf(bench).messages.stream(say('hello'))
      const left = failureOf(stream.finalMessage())
      await until(() => bench.fakes[0]?.running() === 1)
      const started = performance.now()

      stream.abort()

      await until(() => bench.fakes[0]?.running() === 0, 1_000)
      expect(performance.now() - started).toBeLessThan(1_000)
      expect(await left).toBeInstanceOf(Anthropic.APIUserAbortError)
      expect((await settledRecord(bench)).outcome?.end).toBe('client_disconnected')
      await bench.idle()
    }))

  test('a model that nobody has is the 404 that the SDK knows', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const error = await failureOf(clientOf(bench).messages.create({ ...say('hi'), model: 'nobody' }))

      expect(error).toBeInstanceOf(Anthropic.NotFoundError)
      expect(error.type).toBe('not_found_error')
    }))

  test('BL-W04 BL-S05 a node that dies ends the stream with an error, at once, and nothing is tried again', () =>
    quietly([hot(kind), hot(kind)], {}, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'cut', afterChunks: 12 })
      const stream = clientOf(bench, 2).messages.stream(say('hello'))
      const types: string[] = []
      stream.on('streamEvent', ({ type }) => types.push(type))

      const error = await failureOf(stream.finalMessage())

      expect(error).toBeInstanceOf(Anthropic.APIError)
      expect(error.type).toBe('api_error')
      expect(types).not.toContain('message_stop')
      expect(asked(bench.fakes[1] as never)).toEqual([])
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'incomplete', node: 'a', retries: 0 })
    }))

  test('a node that fails before the first byte is replaced, and the client does not hear of it', () =>
    quietly([hot(kind), hot(kind)], {}, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'status', status: 500 })

      const { response } = await clientOf(bench).messages.create(say('hello')).withResponse()

      expect(response.headers.get('x-fleet-node')).toBe('b')
    }))

  test('BL-P10 an answer that is nothing but thinking says so in a header and in its record', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const { data, response } = await clientOf(bench)
        .messages.create({ ...say('hello'), max_tokens: 4 })
        .withResponse()

      expect(data.content.map(({ type }) => type).filter((type) => type !== 'text')).toEqual(['thinking'])
      expect(data.stop_reason).toBe('max_tokens')
      expect(response.headers.get('x-fleet-warning')).toBe('thinking_exhausted')
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', thinkingExhausted: true })
    }))

  test('BL-P06 what is ahead of the node does not reach it', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'made-up-2027-01-01' }
      const reply = await ask(bench.url, anthropicMessages, { headers, more: { context_management: { edits: [] } } })

      expect(anthropicMessages.isWhole(await reply.text())).toBe(true)
      expect(JSON.stringify(bench.fakes[0]?.log.map((request) => request.headers))).not.toContain('made-up')
    }))

  test('the billing header of Claude Code is taken out and counted', () =>
    quietly([hot(kind)], {}, async (bench) => {
      const system = [
        { type: 'text' as const, text: 'x-anthropic-billing-header: cch=1;' },
        { type: 'text' as const, text: 'Be brief.' },
      ]

      await clientOf(bench).messages.create({ ...say('hello'), system })

      expect(JSON.stringify(bench.fakes[0]?.log)).toContain('Be brief.')
      expect(JSON.stringify(bench.fakes[0]?.log)).not.toContain('x-anthropic-billing-header')
      expect(await bench.metrics()).toMatch(/^fleet_billing_headers_removed_total 1$/m)
    }))
})

test('it stays when the configuration says so', () =>
  quietly([hot('openai')], { server: { stripBillingHeader: false } }, async (bench) => {
    const system = [{ type: 'text' as const, text: 'x-anthropic-billing-header: cch=1;' }]

    await clientOf(bench).messages.create({ ...say('hello'), system })

    expect(JSON.stringify(bench.fakes[0]?.log)).toContain('x-anthropic-billing-header')
  }))

describe('a llama-server that speaks the protocol itself', () => {
  const paths = (bench: Bench): string[] =>
    (bench.fakes[0]?.log ?? []).filter(({ method }) => method === 'POST').map(({ path }) => path)

  test.each([
    ['is handed the request as it came', 'b9000-fake', {}, '/v1/messages'],
    ['is translated for when it is older', 'b7000-fake', {}, '/v1/chat/completions'],
    [
      'is translated for what it would leave out',
      'b9000-fake',
      { tool_choice: { type: 'any' } },
      '/v1/chat/completions',
    ],
  ] as const)('%s', (_, version, more, path) =>
    quietly([hot('llamacpp', { version })], {}, async (bench) => {
      const { content } = await clientOf(bench).messages.create({
        ...say('hello'),
        tools: [tool('now')],
        ...more,
      } as Json)

      expect(content.at(-1)?.type).toBe('text')
      expect(paths(bench)).toEqual([path])
    }),
  )

  test('as a router of several models, too, under whatever name the client used', () =>
    quietly([hot('llamacpp-router')], {}, async (bench) => {
      const { model } = await clientOf(bench).messages.create({ ...say('hello'), model: 'M:latest' })

      expect(model).toBe('M:latest')
      expect(paths(bench)).toEqual(['/v1/messages'])
    }))

  test('refuses a prompt that is too long in words on which the client can act', () =>
    quietly([hot('llamacpp', { models: [fastModel('m', { contextTokens: 64 })] })], {}, async (bench) => {
      const error = await failureOf(clientOf(bench).messages.create(say('x'.repeat(4_000))))

      expect(error).toBeInstanceOf(Anthropic.BadRequestError)
      expect(error.error.error.message).toMatch(/^prompt is too long: \d+ tokens > 64 maximum/)
    }))
})

describe('a client that waits longer than server.hold_headers', () => {
  const setup = { server: { holdHeadersMs: 50 } }

  test('gets pings until the answer begins, and its SDK does not mind', () =>
    quietly([hot('openai')], setup, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'slow', ms: 300 })

      const body = await (await ask(bench.url, anthropicMessages)).text()
      const { content } = await clientOf(bench).messages.stream(say('hello')).finalMessage()

      expect(body).toStartWith('event: ping\ndata: {"type":"ping"}\n\n')
      expect(anthropicMessages.isWhole(body)).toBe(true)
      expect(content.at(-1)?.type).toBe('text')
    }))

  test('hears of a failure in its stream', () =>
    quietly([hot('openai')], setup, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'status', status: 500, afterMs: 300 })

      const reply = await ask(bench.url, anthropicMessages)
      const body = await reply.text()

      expect(reply.status).toBe(200)
      expect(anthropicMessages.records(body).at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error' } })
    }))
})

test('the SDK pages through the models and counts tokens', () =>
  quietly([hot('ollama', { models: [fastModel('m'), fastModel('n')] })], {}, async (bench) => {
    const client = clientOf(bench)

    const ids = (await Array.fromAsync(client.models.list({ limit: 1 }))).map(({ id }) => id)
    const { input_tokens } = await client.messages.countTokens({ model: 'm', messages: say('hello').messages })

    expect(ids.toSorted()).toEqual(['m:latest', 'n:latest'])
    expect(input_tokens).toBeGreaterThan(0)
    expect(asked(bench.fakes[0] as never)).toEqual([])
  }))
