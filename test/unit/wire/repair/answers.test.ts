import { describe, expect, test } from 'bun:test'
import type { Exchange, NodeDialect, ReplyTransform, UpstreamRequest } from '../../../../src/wire/exchange'
import { nativeJobs } from '../../../../src/wire/native'
import { arrivalOf, cuts, decodeArrival, nodeOf, run, text, timing } from '../golden'

const encode = (value: string): Uint8Array => new TextEncoder().encode(value)

const broken = `{'city': "Par\u00eds", "note": "a\\d"`
const repaired = { city: 'París', note: 'a\\d' }
const whole = '{"city":  "Rome"}'

const properties = { city: { type: 'string' }, note: { type: 'string' } }
const parameters = { type: 'object', properties, required: ['city'], additionalProperties: false }
const messages = [{ role: 'user', content: 'hi' }]
const functions = [{ type: 'function', function: { name: 'weather', parameters } }]

/** What each client sends, and how its calls are found in what it gets: the JSON values of the arguments, in order. */
const clients = {
  openai: { path: '/v1/chat/completions', body: { messages, tools: functions } },
  ollama: { path: '/api/chat', body: { messages, tools: functions } },
  anthropic: { path: '/v1/messages', body: { messages, tools: [{ name: 'weather', input_schema: parameters }] } },
  responses: {
    path: '/v1/responses',
    body: { input: 'hi', tools: [{ type: 'function', name: 'weather', parameters }] },
  },
  native: { path: '/api/v1/jobs', body: { messages, tools: functions } },
} as const

type Client = keyof typeof clients

const exchangeFor = (client: Client, more: object = {}, repairToolCalls = true): Exchange => {
  const { path, body } = clients[client]
  const arrival = arrivalOf(path, JSON.stringify({ model: 'm', ...body, ...more }))
  const decode = client === 'native' ? nativeJobs.decode : decodeArrival
  return decode(repairToolCalls ? { ...arrival, repairToolCalls } : arrival)
}

const replyOf = (exchange: Exchange, node: NodeDialect, model = 'm'): ReplyTransform => {
  const native = node === 'anthropic' ? (['openai', node] as const) : [node]
  const request: UpstreamRequest = exchange.request({ node: nodeOf(node), model, native })
  return exchange.reply(request, model, timing())
}

const sse = (data: object | string): string => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const chunk = (delta: object, finish: string | null = null): string =>
  sse({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], system_fingerprint: 'f' })
const fragment = (index: number, said: object): string => chunk({ tool_calls: [{ index, ...said }] })
const began = (index: number, name = 'weather'): string =>
  fragment(index, { id: `call_${index}`, type: 'function', function: { name, arguments: '' } })
const grown = (index: number, part: string): string => fragment(index, { function: { arguments: part } })

const opening = chunk({ role: 'assistant', content: '' }) + chunk({ content: 'Let me see.' })
const ending = (finish = 'tool_calls'): string => chunk({}, finish) + sse('[DONE]')
const partsOf = (args: string, length: number): string[] => args.match(new RegExp(`.{1,${length}}`, 'gs')) ?? []
const stream = (args: string, finish?: string, length = 1): string =>
  opening +
  began(0) +
  partsOf(args, length)
    .map((part) => grown(0, part))
    .join('') +
  ending(finish)
const answer = (args: string, finish = 'tool_calls'): string =>
  JSON.stringify({
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'weather', arguments: args } }],
        },
        finish_reason: finish,
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 2 },
  })

const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const anthropicStream = (args: string, reason = 'tool_use', length = 1): string =>
  event('message_start', {
    message: { id: 'x', model: 'm', role: 'assistant', content: [], usage: { input_tokens: 3 } },
  }) +
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Let me see.' } }) +
  event('content_block_stop', { index: 0 }) +
  event('content_block_start', { index: 1, content_block: { type: 'tool_use', id: 't', name: 'weather', input: {} } }) +
  partsOf(args, length)
    .map((part) => event('content_block_delta', { index: 1, delta: { type: 'input_json_delta', partial_json: part } }))
    .join('') +
  event('content_block_stop', { index: 1 }) +
  event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 9 } }) +
  event('message_stop', {})

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers whose shape is what they check
type Json = any

const jsonOf = (body: string): Json[] =>
  body
    .split('\n')
    .map((line) => (line.startsWith('data: ') ? line.slice('data: '.length) : line))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

/** The arguments that a client of this kind gets, as one text. */
const argumentsIn: Readonly<Record<Client, (records: Json[]) => string>> = {
  openai: (records) =>
    records
      .flatMap(({ choices: [choice] }) => (choice?.delta ?? choice?.message)?.tool_calls ?? [])
      .map((call: Json) => call.function.arguments)
      .join(''),
  ollama: (records) =>
    records
      .flatMap(({ message }) => message?.tool_calls ?? [])
      .map((call: Json) => JSON.stringify(call.function.arguments))
      .join(''),
  anthropic: (records) => {
    const [first] = records
    if (first.content) return JSON.stringify(first.content.find(({ type }: Json) => type === 'tool_use').input)
    return records.map(({ delta }) => delta?.partial_json ?? '').join('')
  },
  responses: (records) =>
    records
      .flatMap(({ output, response }) => output ?? response?.output ?? [])
      .filter(({ type }: Json) => type === 'function_call')
      .map((item: Json) => item.arguments)
      .join(''),
  native: (records) => {
    const [first] = records
    if (first.calls) return first.calls[0].arguments
    return records.map((record) => record.arguments ?? record.fragment ?? '').join('')
  },
}

const names = Object.keys(clients) as Client[]

describe('broken arguments', () => {
  test.each(names)('reach a client that streams whole, wherever the bytes are cut: %s', (client) => {
    for (const pieces of cuts(encode(stream(broken, 'tool_calls', 12)))) {
      const reply = replyOf(exchangeFor(client, { stream: true }), 'openai')
      const records = jsonOf(run(reply, pieces))

      expect(JSON.parse(argumentsIn[client](records))).toEqual(repaired)
      expect(reply.complete()).toBe(true)
      expect(reply.usage().toolCallsRepaired).toBe(1)
    }
  })

  test.each(names)('do so wherever the arguments are cut: %s', (client) => {
    for (let length = 1; length <= broken.length; length++) {
      const reply = replyOf(exchangeFor(client, { stream: true }), 'openai')
      const records = jsonOf(run(reply, [encode(stream(broken, 'tool_calls', length))]))

      expect(JSON.parse(argumentsIn[client](records))).toEqual(repaired)
    }
  })

  test.each(names)('and one that does not: %s', (client) => {
    for (const pieces of cuts(encode(answer(broken)))) {
      const reply = replyOf(exchangeFor(client, { stream: false }), 'openai')

      expect(JSON.parse(argumentsIn[client](jsonOf(run(reply, pieces))))).toEqual(repaired)
      expect(reply.usage()).toMatchObject({ tokensOut: 2, toolCallsRepaired: 1 })
    }
  })

  test('in a stream of Anthropic that passes through, too', () => {
    for (const pieces of cuts(encode(anthropicStream(broken, 'tool_use', 12)))) {
      const reply = replyOf(exchangeFor('anthropic', { stream: true }), 'anthropic')
      const body = run(reply, pieces)

      expect(JSON.parse(argumentsIn.anthropic(jsonOf(body)))).toEqual(repaired)
      expect(body).toStartWith(
        anthropicStream('').split('event: content_block_stop\ndata: {"type":"content_block_stop","index":1}')[0] ?? '-',
      )
      expect(reply.complete()).toBe(true)
      expect(reply.usage()).toEqual({ tokensIn: 3, tokensOut: 9, toolCallsRepaired: 1 })
    }
  })

  test.each(names)('are passed on without the setting: %s', (client) => {
    const reply = replyOf(exchangeFor(client, { stream: true }, false), 'openai')
    const records = jsonOf(run(reply, [encode(stream(broken))]))

    expect(argumentsIn[client](records)).toBe(client === 'ollama' ? JSON.stringify({ _raw: broken }) : broken)
    expect(reply.usage().toolCallsRepaired).toBeUndefined()
  })
})

describe('a stream that passes through', () => {
  const passing = (body: string, more: object = {}): { readonly out: string; readonly reply: ReplyTransform } => {
    const reply = replyOf(
      exchangeFor('openai', { stream: true, stream_options: { include_usage: true }, ...more }),
      'openai',
    )
    return { out: run(reply, [encode(body)]), reply }
  }

  test('keeps every byte where nothing has to be repaired', () => {
    const body = `: hello\n\n${stream(whole)}`

    expect(passing(body).out).toBe(body)
  })

  test('keeps every byte where the schema does not accept what could be repaired', () => {
    const body = stream(`{'town': "Paris"`)

    expect(passing(body).out).toBe(body)
    expect(passing(body).reply.usage().toolCallsRepaired).toBeUndefined()
  })

  test('keeps every byte of a call that nobody offered', () => {
    const body = opening + began(0, 'other') + grown(0, broken) + ending()

    expect(passing(body).out).toBe(body)
  })

  test.each(['length', 'content_filter'])('keeps a call that was cut off as it is: %s', (reason) => {
    const body = stream(broken, reason)

    expect(passing(body).out).toBe(body)
  })

  test('keeps the parts of an answer that nothing is known to have ended', () => {
    const body = opening + began(0) + grown(0, broken)
    const { out, reply } = passing(body)

    expect(out).toBe(opening)
    expect(reply.complete()).toBe(false)
  })

  test('changes no other event, nor another call beside the broken one', () => {
    const parts = [
      opening,
      began(0),
      began(1),
      grown(1, whole.slice(0, 5)),
      grown(0, broken),
      grown(1, whole.slice(5)),
      ending(),
    ]
    const { out } = passing(parts.join(''))

    const [text, first, ...rest] = parts
    expect(out).toStartWith(`${text}`)
    expect(out).toEndWith([rest[0], rest[1], rest[3], rest[4]].join('').slice(-ending().length))
    expect(out).toContain(rest[1] ?? '-')
    expect(first).toBeDefined()
    const calls = jsonOf(out).flatMap(({ choices: [choice] }) => choice?.delta?.tool_calls ?? [])
    const of = (index: number): string =>
      calls
        .filter((call: Json) => call.index === index)
        .map((call: Json) => call.function.arguments)
        .join('')
    expect(JSON.parse(of(0))).toEqual(repaired)
    expect(of(1)).toBe(whole)
    expect(calls[0]).toMatchObject({ id: 'call_0', type: 'function', function: { name: 'weather' } })
    expect(jsonOf(out).every(({ system_fingerprint: print }) => print === 'f')).toBe(true)
  })

  test('fills in the object of a call without any text', () => {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }]
    const { out } = passing(opening + began(0) + ending(), { tools })

    expect(argumentsIn.openai(jsonOf(out))).toBe('{}')
  })

  test('tells text and signs of life at once, calls when they are whole', () => {
    const reply = replyOf(exchangeFor('openai', { stream: true, stream_options: { include_usage: true } }), 'openai')
    const told = [opening, began(0), grown(0, broken), ': ping\n\n', ending()].map((part) =>
      text(reply.push(encode(part))),
    )

    expect(told.slice(0, 4)).toEqual([opening, '', '', ': ping\n\n'])
    expect(told[4]).toContain('call_0')
  })

  test('with several answers at once is not looked into', () => {
    const other = sse({ choices: [{ index: 1, delta: { tool_calls: [{ index: 0, function: { arguments: '{' } }] } }] })
    const body = opening + began(0) + grown(0, broken) + other + ending()

    expect(passing(body).out).toBe(body)
  })

  test('is given up where a call is longer than what is kept back', () => {
    const long = Array.from({ length: 90 }, () => grown(0, `"${'x'.repeat(100_000)}`)).join('')
    const body = opening + began(0) + long + ending()

    expect(passing(body).out).toBe(body)
  })

  test('has its name replaced and its usage chunk dropped all the same', () => {
    const exchange = exchangeFor('openai', { stream: true, model: 'asked' })
    const usage = sse({ model: 'm', choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } })
    const reply = replyOf(exchange, 'openai', 'm')
    const out = run(reply, [
      encode(opening + began(0) + grown(0, broken) + chunk({}, 'tool_calls') + usage + sse('[DONE]')),
    ])

    expect(JSON.parse(argumentsIn.openai(jsonOf(out)))).toEqual(repaired)
    expect(new Set(out.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"asked"']))
    expect(out).not.toContain('usage')
    expect(reply.usage()).toEqual({ tokensIn: 1, tokensOut: 2, toolCallsRepaired: 1 })
  })

  test('without tools in the request is the very same array', () => {
    const reply = replyOf(
      exchangeFor('openai', { stream: true, tools: [], stream_options: { include_usage: true } }),
      'openai',
    )
    const bytes = encode(stream(broken))

    expect(reply.push(bytes)).toBe(bytes)
  })

  test('without the setting is the very same array, and parses no tools', () => {
    const more = { stream: true, stream_options: { include_usage: true } }
    const reply = replyOf(exchangeFor('openai', more, false), 'openai')
    const bytes = encode(stream(broken))

    expect(reply.push(bytes)).toBe(bytes)
  })
})

test('a stream of Anthropic keeps every byte of whole calls and of those that were cut off', () => {
  for (const body of [anthropicStream(whole), anthropicStream(broken, 'max_tokens'), anthropicStream('')]) {
    const reply = replyOf(exchangeFor('anthropic', { stream: true }), 'anthropic')

    expect(run(reply, [encode(body)])).toBe(body)
    expect(reply.usage().toolCallsRepaired).toBeUndefined()
  }
})

test.each(names)('an answer in one piece that was cut off is not repaired: %s', (client) => {
  const reply = replyOf(exchangeFor(client, { stream: false }), 'openai')

  run(reply, [encode(answer(broken, 'length'))])

  expect(reply.usage().toolCallsRepaired).toBeUndefined()
})

test('an answer in one piece that needs nothing keeps its bytes', () => {
  const body = answer(whole).replace('"usage"', '"big":12345678901234567890,"usage"')
  const reply = replyOf(exchangeFor('openai', { stream: false }), 'openai')

  expect(run(reply, [encode(body)])).toBe(body)
})

test('what a translated answer says beside a call is told at once', () => {
  const reply = replyOf(exchangeFor('anthropic', { stream: true }), 'openai')
  const tell = (part: string): string => text(reply.push(encode(part)))

  expect(tell(opening)).toContain('Let me see.')
  expect(tell(began(0))).toContain('"name":"weather"')
  expect(tell(grown(0, broken))).toBe('')
  expect(tell(chunk({ content: 'Now.' }))).toContain('partial_json')
})
