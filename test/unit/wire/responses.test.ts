import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import type { Exchange } from '../../../src/wire/exchange'
import { arrivalOf, decodeArrival, exchangeOf, nodeOf, run, text, timing } from './golden'

const path = '/v1/responses'
const encode = (value: string): Uint8Array => new TextEncoder().encode(value)
const broken = new RouterError('upstream_failed', 'The node broke off.')
const said = (content: string): Uint8Array =>
  encode(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
const finish = encode('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
type Event = any

const eventsOf = (...pieces: (Uint8Array | undefined)[]): Event[] =>
  pieces
    .map(text)
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)))

const typesOf = (events: readonly Event[]): string[] => events.map(({ type }) => type.replace('response.', ''))

const streaming = (more: object = {}): Exchange =>
  exchangeOf(path, { model: 'asked', input: 'hi', stream: true, ...more })

const attempt = (exchange: Exchange) =>
  exchange.reply(exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] }), 'm', timing())

describe('while a client waits', () => {
  test('it is told that its response exists, with a comment each time, and the answer goes on from there', () => {
    const exchange = streaming()
    const first = exchange.keepAlive?.()
    const transform = attempt(exchange)
    const second = exchange.keepAlive?.()
    const answer = transform.push(said('a'))
    const third = exchange.keepAlive?.()
    const end = transform.push(finish)

    expect([first, second, third].map((bytes) => text(bytes).startsWith(': '))).toEqual([true, true, true])
    const events = eventsOf(first, second, answer, third, end)
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    expect(typesOf(events)).toEqual([
      'created',
      'in_progress',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'in_progress',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    expect(transform.begun()).toBe(true)
  })

  test('an attempt that failed unheard leaves no trace in the stream of the next', () => {
    const exchange = streaming()
    const failing = attempt(exchange)
    failing.push(encode(`${text(said('a'))}data: {"error":{"message":"out of memory"}}\n\n`))
    expect(failing.problem()).toEqual({ message: 'out of memory' })

    const waited = exchange.keepAlive?.()
    const events = eventsOf(waited, attempt(exchange).push(said('b')))

    expect(typesOf(events)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
    ])
    expect(events.map(({ sequence_number: number }) => number)).toEqual([0, 1, 2, 3, 4])
    expect(events.at(-1).delta).toBe('b')
  })

  test('an answer that is not streamed has nothing to send', () => {
    expect(streaming({ stream: false }).keepAlive).toBeUndefined()
  })
})

describe('errors inside a stream', () => {
  test('after the first byte the response fails, with what there is of it', () => {
    const exchange = streaming()
    const begun = attempt(exchange).push(said('half'))
    const events = eventsOf(begun, exchange.inBandError(broken))

    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: {
        status: 'failed',
        error: { code: 'server_error', message: 'The node broke off.' },
        output: [{ type: 'message', status: 'incomplete', content: [{ text: 'half' }] }],
      },
      fleet: { code: 'upstream_failed', request_id: 'req_000000000001' },
    })
  })

  test('BL-W04 it stands alone after half an event', () => {
    expect(text(streaming().inBandError(broken)).startsWith('\n\nevent: response.created\n')).toBe(true)
  })

  test.each([
    ['context_too_large', 'context_length_exceeded'],
    ['queue_full', 'rate_limit_exceeded'],
    ['no_capacity', 'server_error'],
  ] as const)('%s before anything was said is a response that failed with %s', (code, told) => {
    const events = eventsOf(streaming().inBandError(new RouterError(code, 'No.')))

    expect(typesOf(events)).toEqual(['created', 'in_progress', 'failed'])
    expect(events.at(-1).response.error).toEqual({ code: told, message: 'No.' })
  })

  test('BL-S07 without the end of the node there is no response.completed', () => {
    const transform = attempt(streaming())
    const events = eventsOf(transform.push(said('a')), transform.end())

    expect(transform.complete()).toBe(false)
    expect(typesOf(events)).not.toContain('completed')
  })
})

describe('what routing knows of a request', () => {
  const jobOf = (body: object) => exchangeOf(path, { model: 'm', input: 'hi', ...body }).job

  test('pictures, in messages and in results of tools, need eyes', () => {
    const picture = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' }

    expect(jobOf({ input: [{ role: 'user', content: [picture] }] }).needs).toEqual(['vision'])
    expect(jobOf({ input: [{ type: 'function_call_output', call_id: 'c', output: [picture] }] }).needs).toEqual([
      'vision',
    ])
  })

  test.each([
    [{ type: 'function', name: 'f' }, ['tools']],
    [{ type: 'custom', name: 'f' }, ['tools']],
    [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] }, ['tools']],
    [{ type: 'web_search' }, []],
  ] as const)('of tools those that can be offered count: %j', (tool, needs) => {
    expect(jobOf({ tools: [tool] }).needs).toEqual([...needs])
  })

  test('all text counts: instructions, messages, calls and their results', () => {
    const text = 'x'.repeat(400)
    const job = jobOf({
      instructions: text,
      input: [
        { role: 'user', content: text },
        { role: 'user', content: [{ type: 'input_text', text }] },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: text },
        { type: 'function_call_output', call_id: 'c', output: text },
        { type: 'custom_tool_call', call_id: 'd', name: 'g', input: text },
      ],
    })

    expect(job.promptTokens.value).toBeGreaterThanOrEqual(600)
    expect(job.promptTokens.value).toBeLessThan(610)
  })

  test('the key of the cache names the conversation, else its beginning does, and a header wins', () => {
    const turns = (more: object[]) => [{ role: 'user', content: 'hi' }, ...more]
    const later = turns([
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'b' },
    ])
    const withHeader = decodeArrival(
      arrivalOf(path, JSON.stringify({ model: 'm', input: 'hi', prompt_cache_key: 'k' }), { session: 's' }),
    )

    expect(jobOf({ prompt_cache_key: 'thread-1' }).session).toBe('thread-1')
    expect(jobOf({ input: later }).session).toBe(jobOf({ input: turns([]) }).session)
    expect(jobOf({ input: turns([]) }).session).not.toBe(jobOf({ input: 'other' }).session)
    expect(withHeader.job.session).toBe('s')
  })

  test('it is told apart from a chat', () => {
    expect(jobOf({})).toMatchObject({ dialect: 'openai', operation: 'openai.responses', stream: false })
    expect(exchangeOf('/v1/completions', { model: 'm', prompt: 'hi' }).job.operation).toBe('openai.completions')
  })
})

test('BL-I01 an answer cut at every byte arrives as one, in deltas and in the end', () => {
  const answer = '北京今天多云 🌍 👩‍👩‍👧 é'
  const bytes = encode(text(said(answer)) + text(finish))
  for (let at = 1; at < bytes.length; at++) {
    const transform = attempt(streaming())
    const events = eventsOf(encode(run(transform, [bytes.subarray(0, at), bytes.subarray(at)])))

    expect(events.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? delta : [])).join('')).toBe(
      answer,
    )
    expect(events.at(-1).response.output[0].content[0].text).toBe(answer)
  }
})

test('BL-P02 a call in one object and the end in the next is a completed call', () => {
  const exchange = streaming({ tools: [{ type: 'function', name: 'f' }] })
  const request = exchange.request({ node: nodeOf('ollama'), model: 'm', native: ['ollama'] })
  const transform = exchange.reply(request, 'm', timing())
  const events = eventsOf(
    transform.push(encode('{"message":{"tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}\n')),
    transform.push(encode('{"message":{"content":""},"done":true,"done_reason":"stop"}\n')),
  )

  expect(events.at(-1)).toMatchObject({
    type: 'response.completed',
    response: { output: [{ type: 'function_call', status: 'completed', arguments: '{}' }] },
  })
})

test('a grammar is told to the model, since no engine holds it to one', () => {
  const exchange = streaming({
    tools: [{ type: 'custom', name: 'p', format: { type: 'grammar', syntax: 'regex', definition: '^a+$' } }],
  })
  const request = exchange.request({ node: nodeOf('openai'), model: 'm', native: ['openai'] })

  expect(JSON.parse(text(request.body)).tools[0].function.description).toBe(
    'The input must match this regex grammar:\n^a+$',
  )
})
