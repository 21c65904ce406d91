import { describe, expect, test } from 'bun:test'
import type { Exchange, ReplyTransform, UpstreamRequest } from '../../../src/wire/exchange'
import { arrivalOf, cuts, decodeArrival, nodeOf, run, text, timing } from './golden'

const encode = (value: string): Uint8Array => new TextEncoder().encode(value)

const openai = (body: string): Exchange => decodeArrival(arrivalOf('/v1/chat/completions', body))
const ollama = (body: string): Exchange => decodeArrival(arrivalOf('/api/chat', body))

const up = (
  exchange: Exchange,
  model: string,
  more: { contextTokens?: number; keepAlive?: string } = {},
): UpstreamRequest => {
  const native = exchange.job.dialect === 'openai' ? 'openai' : 'ollama'
  const { contextTokens } = more
  const node = nodeOf(native, more.keepAlive === undefined ? {} : { keepAlive: more.keepAlive })
  return exchange.request({ node, model, native: [native], ...(contextTokens !== undefined && { contextTokens }) })
}

const down = (exchange: Exchange, model: string): ReplyTransform => exchange.reply(up(exchange, model), model, timing())

const chat = '"messages":[{"role":"user","content":"hi"}]'

describe('the request', () => {
  test('under the same name a body goes on as the very same bytes', () => {
    const arrival = arrivalOf('/v1/chat/completions', `{"model":"m","unknown":[1.0e2],${chat}}`)

    expect(up(decodeArrival(arrival), 'm').body).toBe(arrival.body)
  })

  test('an Ollama body too, streaming by its default, where no window is known', () => {
    const arrival = arrivalOf('/api/chat', `{"model":"m",${chat}}`)
    const request = up(decodeArrival(arrival), 'm')

    expect(request.body).toBe(arrival.body)
    expect(request).toMatchObject({ path: '/api/chat', stream: true, dialect: 'ollama' })
  })

  test('another name replaces only the top-level value; everything else stays byte for byte', () => {
    const body = `{ "nested":{"model":"a"}, "\\u006dodel" : "a" ,"x":1.50, ${chat}, "text":"\\"model\\":\\"a\\"" }`

    expect(text(up(openai(body), 'node/b:q4').body)).toBe(body.replace('" : "a"', '" : "node/b:q4"'))
  })

  test('a model that is written twice is replaced twice, so that no reader sees another', () => {
    expect(text(up(openai(`{"model":"a","model":"b",${chat}}`), 'c').body)).toBe(`{"model":"c","model":"c",${chat}}`)
  })

  test('a byte order mark is left out', () => {
    const exchange = openai(`\uFEFF{"model":"m",${chat}}`)

    expect(text(up(exchange, 'm').body.slice(0, 1))).toBe('{')
    expect(exchange.job.asked).toBe('m')
  })

  test.each([
    [`{"model":"m","stream":true,${chat}}`, { include_usage: true }],
    [`{"model":"m","stream":true,"stream_options":null,${chat}}`, { include_usage: true }],
    [`{"model":"m","stream":true,"stream_options":{},${chat}}`, { include_usage: true }],
    [`{"model":"m","stream":true,"stream_options":{ "x":1 },${chat}}`, { include_usage: true, x: 1 }],
    [`{"model":"m","stream":true,"stream_options":{"include_usage":false},${chat}}`, { include_usage: true }],
    [`{"model":"m","stream":false,${chat}}`, undefined],
  ])('usage is asked for in streams: %s', (body, expected) => {
    expect(JSON.parse(text(up(openai(body), 'm').body)).stream_options).toEqual(expected)
  })

  test('a client that asks for usage itself keeps its bytes', () => {
    const arrival = arrivalOf(
      '/v1/chat/completions',
      `{"model":"m","stream":true,"stream_options":{"include_usage":true},${chat}}`,
    )

    expect(up(decodeArrival(arrival), 'm').body).toBe(arrival.body)
  })

  test.each([
    [',"options":{"num_ctx":4096}', '{"num_ctx":32768}'],
    [',"options":{"num_ctx":4096,"seed":1}', '{"seed":1,"num_ctx":32768}'],
    [',"options":{"seed":1, "num_ctx":4096}', '{"seed":1,"num_ctx":32768}'],
    [',"options":{"a":1,"num_ctx":4096 , "b":[2, 3]}', '{"a":1,"b":[2, 3],"num_ctx":32768}'],
    [',"options":{"num_ctx":1,"num_ctx":2}', '{"num_ctx":32768}'],
    [',"options":{"seed" : 1}', '{"seed" : 1,"num_ctx":32768}'],
    [',"options":{}', '{"num_ctx":32768}'],
    [',"options":null', '{"num_ctx":32768}'],
  ])('BL-X01 BL-X02 a request names the loaded window, whether it asks for less or for none: %s', (asked, options) => {
    const exchange = ollama(`{"model":"m"${asked},${chat}}`)

    expect(text(up(exchange, 'm', { contextTokens: 32_768 }).body)).toBe(`{"model":"m","options":${options},${chat}}`)
  })

  test('BL-X02 a request without options names the loaded window', () => {
    const { body } = up(ollama(`{"model":"m",${chat}}`), 'm', { contextTokens: 32_768 })

    expect(text(body)).toBe(`{"options":{"num_ctx":32768},"model":"m",${chat}}`)
  })

  test.each(['{"num_ctx":32768}', '{"num_ctx":65536}', '{"seed":1,"num_ctx":32768}'])(
    'a num_ctx that is the loaded window, or larger, keeps its bytes: %s',
    (options) => {
      const arrival = arrivalOf('/api/chat', `{"model":"m","options":${options},${chat}}`)

      expect(up(decodeArrival(arrival), 'm', { contextTokens: 32_768 }).body).toBe(arrival.body)
    },
  )

  test.each(['num_batch', 'num_gpu', 'main_gpu', 'use_mmap', 'num_thread', 'draft_num_predict'])(
    'BL-X01 %s, which would reload the model, does not reach the node',
    (name) => {
      const exchange = ollama(`{"model":"m","options":{"seed":1,"${name}":1,"top_k":2},${chat}}`)

      expect(JSON.parse(text(up(exchange, 'm').body)).options).toEqual({ seed: 1, top_k: 2 })
    },
  )

  test('without a known window num_ctx stays, and is a constraint for placement', () => {
    const exchange = ollama(`{"model":"m","options":{"num_ctx":4096},${chat}}`)

    expect(text(up(exchange, 'm').body)).toContain('"num_ctx":4096')
    expect(exchange.job.contextTokens).toBe(4096)
  })

  test.each([
    [`{"model":"m","keep_alive":0,${chat}}`, '2h'],
    [`{"model":"m","keep_alive":"5m",${chat}}`, '2h'],
    [`{"model":"m",${chat}}`, '2h'],
    ['{"model":"m","messages":[],"keep_alive":0}', 0],
  ])("the operator's keep_alive goes before the client's, but an unload stays one: %s", (body, keepAlive) => {
    expect(JSON.parse(text(up(ollama(body), 'm', { keepAlive: '2h' }).body)).keep_alive).toBe(keepAlive)
  })

  test("the client's keep_alive stays where the operator set none", () => {
    const arrival = arrivalOf('/api/chat', `{"model":"m","keep_alive":"5m",${chat}}`)

    expect(up(decodeArrival(arrival), 'm').body).toBe(arrival.body)
  })
})

const event = (data: unknown): string => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const chunk = (model: string, delta: object, finish: string | null = null): string =>
  event({ id: 'c', model, choices: [{ index: 0, delta, finish_reason: finish }] })
const usage = (model: string): string =>
  event({
    id: 'c',
    model,
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 1 } },
  })

const wants = `{"model":"asked","stream":true,"stream_options":{"include_usage":true},${chat}}`
const silent = `{"model":"asked","stream":true,${chat}}`

describe('an OpenAI stream', () => {
  test('under the same name the very same chunks go down', () => {
    const transform = down(openai(wants), 'asked')
    const pieces = [
      chunk('other', { role: 'assistant' }),
      chunk('other', { content: '"model":"asked"' }).slice(0, 9),
      'rest\n\n',
    ].map(encode)

    expect(pieces.map((piece) => transform.push(piece))).toEqual(pieces)
    expect(transform.push(pieces[0] ?? new Uint8Array())).toBe(pieces[0])
    expect(transform.end()).toBeUndefined()
  })

  test('BL-I01 under another name only the name changes, wherever the bytes are cut', () => {
    const words = { content: '北京 🌍 {"model":"node"} "model": "node"' }
    const stream = (model: string): string =>
      `: ping\n\n${chunk(model, { role: 'assistant' })}${chunk(model, words).replace('"model":', '"model": ')}${chunk(model, {}, 'stop')}${usage(model)}${event('[DONE]')}`
    const bytes = encode(stream('node'))

    for (const pieces of cuts(bytes)) expect(run(down(openai(wants), 'node'), pieces)).toBe(stream('asked'))
  })

  test('the usage chunk that only we asked for is dropped, and counted', () => {
    const before = chunk('asked', { content: 'a' }) + chunk('asked', {}, 'stop')
    const bytes = encode(before + usage('asked') + event('[DONE]'))

    for (const pieces of cuts(bytes)) {
      const transform = down(openai(silent), 'asked')
      expect(run(transform, pieces)).toBe(before + event('[DONE]'))
      expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4, cachedIn: 1 })
    }
  })

  test('whole chunks stay the same arrays while the usage chunk is awaited', () => {
    const transform = down(openai(silent), 'asked')
    const piece = encode(chunk('asked', { content: 'a' }))

    expect(transform.push(piece)).toBe(piece)
  })

  test('line ends with carriage returns are kept', () => {
    const crlf = (value: string): string => value.replaceAll('\n', '\r\n')
    const bytes = encode(
      crlf(chunk('node', { content: 'a' }) + chunk('node', {}, 'stop') + usage('node') + event('[DONE]')),
    )
    const expected = crlf(chunk('asked', { content: 'a' }) + chunk('asked', {}, 'stop') + event('[DONE]'))

    for (const pieces of cuts(bytes)) {
      const transform = down(openai(silent), 'node')
      expect(run(transform, pieces)).toBe(expected)
      expect(transform.complete()).toBe(true)
    }
  })

  test('a node that answers under a third name does not show it', () => {
    const bytes = encode(chunk('/models/file.gguf', { content: 'a' }) + event('[DONE]'))

    expect(run(down(openai(wants), 'node'), [bytes])).toBe(chunk('asked', { content: 'a' }) + event('[DONE]'))
  })

  test.each([
    ['names beyond ASCII', '模型', JSON.stringify('模型')],
    ['names beyond ASCII, escaped by the node', '模型', '"\\u6a21\\u578b"'],
    ['names with a slash', 'org/m:q4', '"org/m:q4"'],
  ])('%s are found', (_, model, spelled) => {
    const told = run(down(openai(wants), model), [encode(`data: {"model":${spelled},"choices":[]}\n\n`)])

    expect(told).toBe('data: {"model":"asked","choices":[]}\n\n')
  })

  test('of llama-server names the role in its first piece, also where the engine left it out, wherever it is cut', () => {
    const llamacpp = (body: string): ReplyTransform => {
      const exchange = openai(body)
      const node = nodeOf('openai', { kind: 'llamacpp' })
      return exchange.reply(exchange.request({ node, model: 'asked', native: ['openai'] }), 'asked', timing())
    }
    const before = `: ping\n\n${event({ choices: [], prompt_filter_results: [] })}`
    const rest = chunk('asked', { content: ' hello "delta":{' }) + chunk('asked', {}, 'stop') + event('[DONE]')
    const first = (delta: object): string => chunk('asked', delta)
    const spaced = (text: string): string => text.replace('"delta":{', '"delta": {')
    const lacking = [{ content: '🌟' }, {}, { role: 'assistant', content: null }]

    for (const [delta, form] of lacking.flatMap((delta) => [[delta, String] as const, [delta, spaced] as const])) {
      const bytes = encode(before + form(first(delta)) + rest)
      const expected = before + form(first({ role: 'assistant', ...delta })) + rest
      for (const body of [wants, silent]) {
        for (const pieces of cuts(bytes)) expect(run(llamacpp(body), pieces)).toBe(expected)
      }
    }
  })

  test('BL-S07 it is complete with [DONE] or a finish reason, and not without', () => {
    const complete = (stream: string): boolean => {
      const transform = down(openai(wants), 'asked')
      run(transform, [encode(stream)])
      return transform.complete()
    }
    const content = chunk('asked', { content: '"finish_reason":"stop" data: [DONE]' })

    expect(complete(content)).toBe(false)
    expect(complete(content + event('[DONE]'))).toBe(true)
    expect(complete(content + chunk('asked', {}, 'length'))).toBe(true)
    expect(complete('')).toBe(false)
  })

  test('comments and half events do not begin it', () => {
    const transform = down(openai(wants), 'asked')
    transform.push(encode(': ping\n\n'))
    transform.push(encode('data: {"choices":[{"delta":{"content"'))
    expect(transform.begun()).toBe(false)

    transform.push(encode(':"a"}}]}\n\n'))
    expect(transform.begun()).toBe(true)
  })

  test.each([
    ['an error event', event({ error: { message: 'too busy', code: 503 } })],
    ['a named error event', `event: error\ndata: {"message":"too busy","code":503}\n\n`],
    ['a bare error object (BL-S08)', '{"error":{"message":"too busy","code":503}}'],
  ])('%s at the beginning is a problem before anything begun', (_, stream) => {
    const transform = down(openai(wants), 'asked')
    run(transform, [encode(stream)])

    expect(transform.begun()).toBe(false)
    expect(transform.problem()).toEqual({ message: 'too busy', status: 503 })
    expect(transform.complete()).toBe(false)
  })

  test('an error at the end is a problem too', () => {
    const transform = down(openai(wants), 'asked')
    run(transform, [encode(chunk('asked', { content: 'a' }) + event({ error: { message: 'slot lost' } }))])

    expect(transform.problem()).toEqual({ message: 'slot lost' })
    expect(transform.complete()).toBe(false)
  })

  test('usage comes from timings where a node sends only these', () => {
    const transform = down(openai(wants), 'asked')
    const timings = { cache_n: 6, prompt_n: 4, predicted_n: 5 }
    run(transform, [encode(event({ choices: [{ delta: {}, finish_reason: 'stop' }], timings }))])

    expect(transform.usage()).toEqual({ tokensIn: 10, tokensOut: 5, cachedIn: 6 })
  })
})

describe('an Ollama stream', () => {
  const line = (model: string, rest: object): string => `${JSON.stringify({ model, ...rest })}\n`
  const stream = (model: string): string =>
    line(model, {
      message: { content: '北京 🌍', tool_calls: [{ function: { name: 'f', arguments: { model: 'node' } } }] },
      done: false,
    }) +
    line(model, {
      message: { content: '' },
      done: true,
      done_reason: 'stop',
      total_duration: 9,
      prompt_eval_count: 3,
      eval_count: 4,
    })
  const body = `{"model":"asked",${chat}}`

  test('BL-I01 only the name of the answer changes, not one in the arguments of a call', () => {
    for (const pieces of cuts(encode(stream('node')))) {
      const transform = down(ollama(body), 'node')
      expect(run(transform, pieces)).toBe(stream('asked'))
      expect(transform.complete()).toBe(true)
      expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4 })
    }
  })

  test('under the same name the very same chunks go down', () => {
    const piece = encode(stream('other'))

    expect(down(ollama(body), 'asked').push(piece)).toBe(piece)
  })

  test('BL-S07 without done:true it is not complete', () => {
    const transform = down(ollama(body), 'asked')
    run(transform, [encode(line('asked', { message: { content: '"done":true' }, done: false }))])

    expect(transform.complete()).toBe(false)
  })

  test('a last object longer than what is remembered is still seen', () => {
    const transform = down(ollama(body), 'asked')
    const context = Array.from({ length: 4_000 }, (_, index) => index)
    run(transform, [
      encode(
        line('asked', { response: '', done: true, context, total_duration: 1, prompt_eval_count: 3, eval_count: 4 }),
      ),
    ])

    expect(transform.complete()).toBe(true)
    expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4 })
  })

  test.each([
    ['at the beginning', ''],
    ['after the beginning', line('asked', { message: { content: 'a' }, done: false })],
  ])('an error line %s is a problem', (_, before) => {
    const transform = down(ollama(body), 'asked')
    run(transform, [encode(`${before}{"error":"runner stopped"}\n`)])

    expect(transform.begun()).toBe(before !== '')
    expect(transform.problem()).toEqual({ message: 'runner stopped' })
    expect(transform.complete()).toBe(false)
  })
})

describe('an answer in one piece', () => {
  const openaiBody = (model: string): string =>
    JSON.stringify({
      id: 'c',
      choices: [{ message: { content: '{"model":"node"}' } }],
      model,
      usage: { prompt_tokens: 3, completion_tokens: 4 },
    })

  test('goes down as it comes under the same name', () => {
    const transform = down(openai(`{"model":"asked",${chat}}`), 'asked')
    const piece = encode(openaiBody('other'))

    expect(transform.push(piece)).toBe(piece)
    expect(transform.end()).toBeUndefined()
    expect(transform.complete()).toBe(true)
    expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4 })
  })

  test('gets the name that the client asked for', () => {
    const transform = down(openai(`{"model":"asked",${chat}}`), 'node')

    expect(run(transform, [encode(openaiBody('node').slice(0, 40)), encode(openaiBody('node').slice(40))])).toBe(
      openaiBody('asked'),
    )
  })

  test('BL-S07 is not complete when it is cut off', () => {
    const transform = down(openai(`{"model":"asked",${chat}}`), 'asked')
    run(transform, [encode(openaiBody('asked').slice(0, -1))])

    expect(transform.complete()).toBe(false)
    expect(transform.begun()).toBe(false)
  })

  test('BL-S08 an error behind a 200 is a problem', () => {
    const transform = down(openai(`{"model":"asked",${chat}}`), 'asked')
    run(transform, [encode('{"error":{"message":"model not found"}}')])

    expect(transform.problem()).toEqual({ message: 'model not found' })
    expect(transform.complete()).toBe(false)
  })

  test('of an Ollama node tells its usage', () => {
    const transform = down(ollama(`{"model":"asked","stream":false,${chat}}`), 'asked')
    run(transform, [
      encode('{"model":"asked","message":{"content":"a"},"done":true,"prompt_eval_count":3,"eval_count":4}'),
    ])

    expect(transform.usage()).toEqual({ tokensIn: 3, tokensOut: 4 })
    expect(transform.complete()).toBe(true)
  })
})
