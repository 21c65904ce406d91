import { afterAll, beforeAll, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { createNodeHttp } from '../../src/nodes/fetch-http'
import { countLlamacpp } from '../../src/nodes/llamacpp-count'
import { readTokenQuestion } from '../../src/wire/anthropic'
import type { CountablePrompt } from '../../src/wire/token-count'
import { binary, buildTimeoutMs, until } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { exchangeOf, nodeOf, timing } from '../unit/wire/golden'
import { model, type Rig, startRig, startTimeoutMs } from './two-llamas'

const weather = {
  name: 'weather',
  description: 'Weather of a city',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}

const say = (content: string, maxTokens = 12) => ({
  model,
  max_tokens: maxTokens,
  messages: [{ role: 'user' as const, content }],
})

describeWithEngine('Anthropic SDK, two llama-servers', () => {
  let rig: Rig
  let client: Anthropic

  beforeAll(async () => {
    await binary()
    rig = await startRig()
    client = new Anthropic({ baseURL: rig.fleet.url, apiKey: 'unused', maxRetries: 0 })
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  test('answers whole, and says under which id', async () => {
    const { data, request_id } = await client.messages.create(say('Say hello.')).withResponse()

    expect(data.content[0]).toMatchObject({ type: 'text' })
    expect(['end_turn', 'max_tokens']).toContain(data.stop_reason ?? '')
    expect(data.usage.input_tokens + (data.usage.cache_read_input_tokens ?? 0)).toBeGreaterThan(5)
    expect((await rig.lastSettled()).id).toBe(request_id ?? '')
  })

  test('streams, with the tokens of the prompt in its first event', async () => {
    const stream = client.messages.stream(say('Say hello.'))
    const types: string[] = []
    stream.on('streamEvent', (event) => {
      types.push(event.type)
      if (event.type === 'message_start') expect(event.message.usage.input_tokens).toBeNumber()
    })

    expect(await stream.finalText()).not.toBe('')
    expect(types.filter((type) => type !== 'content_block_delta')).toEqual([
      'message_start',
      'content_block_start',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })

  test('tools that are offered to a model whose template has no place for them are refused, and it says so', async () => {
    const failure: unknown = await client.messages
      .create({ ...say('Weather in Oslo?'), tools: [weather] })
      .catch((error: unknown) => error)

    expect(failure).toBeInstanceOf(Anthropic.BadRequestError)
    expect(String(failure)).toContain('does not support tools')
  })

  test('goes on with a conversation in which tools were called', async () => {
    const { content } = await client.messages.create({
      model,
      max_tokens: 16,
      messages: [
        { role: 'user', content: 'Weather in Oslo?' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rain.' }] },
      ],
    })

    expect(content.length).toBeGreaterThan(0)
  })

  test('a client that leaves stops the computation at the engine within a second', async () => {
    const stream = client.messages.stream({ ...say('Count in words, one number after the other.', 1500) })
    const left = stream.finalMessage().catch((error: unknown) => error)
    await until(rig.processing, (running) => running === 1, 5_000)

    stream.abort()

    await until(rig.processing, (running) => running === 0, 1_000)
    expect(await left).toBeInstanceOf(Anthropic.APIUserAbortError)
    expect((await rig.lastSettled()).outcome?.end).toBe('client_disconnected')
  })

  test('an unknown model is the 404 that the SDK knows', async () => {
    const failure: unknown = await client.messages
      .create({ ...say('Hi.'), model: 'nobody-has-this' })
      .catch((error: unknown) => error)

    expect(failure).toBeInstanceOf(Anthropic.NotFoundError)
    expect(failure).toMatchObject({ type: 'not_found_error' })
  })

  test('a prompt that is too long is refused in words on which clients act', async () => {
    const failure: unknown = await client.messages.create(say('word '.repeat(4_000))).catch((error: unknown) => error)

    expect(failure).toBeInstanceOf(Anthropic.BadRequestError)
    expect(String(failure)).toMatch(/prompt is too long: \d+ tokens > \d+ maximum/)
  })

  test('lists the models', async () => {
    const ids = (await Array.fromAsync(client.models.list())).map(({ id }) => id)

    expect(ids).toEqual([model])
  })

  test('counts the tokens that the engine then reads', async () => {
    const asked = say('Say hello, and then tell me what a llama eats in winter.')
    const { data, response } = await client.messages.countTokens({ model, messages: asked.messages }).withResponse()
    const { usage } = await client.messages.create(asked)

    expect(response.headers.get('x-fleet-tokens')).toBe('counted')
    expect(data.input_tokens).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0))
  })

  test('the count by template and vocabulary, for older engines, is the same', async () => {
    const http = createNodeHttp({ timeoutMs: 5_000, instance: 'a-test', now: Date.now })
    const question = { ...say('Say hello.'), system: 'Be brief.' }
    const { prompt } = readTokenQuestion(new TextEncoder().encode(JSON.stringify(question)))
    const { chat, ...newer } = prompt as CountablePrompt
    const count = (form: CountablePrompt) =>
      countLlamacpp(nodeOf('openai', { url: rig.left.url }), model, form, http, new AbortController().signal)

    expect(await count({ chat })).toBeGreaterThan(10)
    expect(await count({ chat })).toBe((await count({ chat, ...newer })) as number)
  })

  // Engines whose version cannot be read are translated for, so the executable does not go this way with this engine.
  test.each([true, false])(
    'the engine itself speaks the protocol as the pass-through expects: stream %p',
    async (stream) => {
      const exchange = exchangeOf('/v1/messages', {
        ...say('Say hello.'),
        stream,
        system: 'Be brief.',
        tools: [weather],
      })
      const request = exchange.request({ node: nodeOf('anthropic'), model, native: ['openai', 'anthropic'] })
      const reply = exchange.reply(request, model, timing())

      // On a connection of its own: the engine closes idle ones.
      const headers = { ...request.headers, connection: 'close' }
      const answer = await fetch(rig.left.url + request.path, { method: 'POST', headers, body: request.body })
      for await (const chunk of answer.body as ReadableStream<Uint8Array>) reply.push(chunk)
      reply.end()

      expect(request.path).toBe('/v1/messages')
      expect(answer.status).toBe(200)
      expect([reply.complete(), reply.problem()]).toEqual([true, undefined])
      expect(reply.usage().tokensIn).toBeGreaterThan(5)
      expect(reply.usage().tokensOut).toBeGreaterThan(0)
    },
  )
})
