import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RouterError } from '../../../src/domain/errors'
import { peek } from '../../../src/wire/peek'
import { arrivalOf, decodeArrival, exchangeOf } from './golden'

const bytes = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
const messages = [{ role: 'user', content: 'hi' }]

const refusal = (body: string | Uint8Array): RouterError => {
  try {
    peek(typeof body === 'string' ? bytes(body) : body)
  } catch (error) {
    if (error instanceof RouterError) return error
    throw error
  }
  throw new Error('was accepted')
}

describe('the model', () => {
  test.each([
    ['a nested member', '{"x":{"model":"wrong"},"model":"m"}'],
    ['an array of objects', '{"x":[{"model":"wrong"}],"model":"m"}'],
    ['text that looks like it', '{"x":"\\",\\"model\\":\\"wrong\\"","model":"m"}'],
    ['a duplicate: the last counts, as parsers have it', '{"model":"wrong","model":"m"}'],
    ['an escaped member name', '{"\\u006d\\u006fdel":"m"}'],
    ['escapes in the value', '{"model":"\\u006d"}'],
    ['backslashes before a quote', '{"x":"\\\\\\\\","y":"\\\\\\"","model":"m"}'],
    ['a byte order mark', '\uFEFF{"model":"m"}'],
    ['space everywhere', ' \r\n\t{ "model" \n:\t"m" } \n'],
  ])('is found past %s', (_, body) => {
    expect(peek(bytes(body)).model).toBe('m')
  })

  test.each([
    ['{}', 'model'],
    ['{"model":5}', 'model'],
    ['{"model":" "}', 'model'],
    ['{"model":"m","stream":"yes"}', 'stream'],
    ['{"model":"m","messages":{}}', 'messages'],
    ['{"model":"m","messages":["hi"]}', 'messages'],
    ['{"model":"m","options":{"num_ctx":"4096"}}', 'options.num_ctx'],
  ])('and its neighbours are named when they are wrong: %s', (body, param) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_request', details: { param } })
  })
})

describe('bad JSON is refused with its position', () => {
  test.each([
    ['{"model":"m",}', 13],
    ['{"model" "m"}', 9],
    ['{"model":"m"', 12],
    ['{"model":"m"} x', 14],
    ['{"model":"m","a":[1,,2]}', 20],
    ['{"model":"m","a":[1}', 19],
    ['{"model":"m","a":tru}', 17],
    ['{"model":"m","a":01}', 18],
    ['{"model":"m","a":1.}', 19],
    ['{"model":"m","a":"x}', 17],
    ['hello', 0],
  ])('%s', (body, at) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_request' })
    expect(refusal(body).message).toContain(`at byte ${at}.`)
  })

  test('nothing at all', () => {
    expect(refusal('').message).toContain('empty')
  })

  test('a list', () => {
    expect(refusal('[]').message).toContain('object')
  })

  test('brackets without end do not exhaust the stack', () => {
    expect(refusal(`{"model":"m","a":${'['.repeat(1_000_000)}`).code).toBe('invalid_request')
  })
})

test('it agrees with a parser on the facts of any document', () => {
  const document = fc.record(
    {
      model: fc.string({ minLength: 1 }),
      stream: fc.boolean(),
      max_tokens: fc.integer(),
      extra: fc.jsonValue(),
      more: fc.jsonValue(),
    },
    { requiredKeys: ['model'] },
  )
  fc.assert(
    fc.property(document, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      fc.pre(value.model.trim() !== '')
      const facts = peek(bytes(JSON.stringify(value, null, indent)))

      expect(facts.model).toBe(value.model)
      expect(facts.stream).toBe(value.stream as boolean)
      expect(facts.maxTokens).toBe(value.max_tokens as number)
    }),
  )
})

test('mutated bodies are accepted or refused, and nothing else happens', () => {
  const seeds = [
    [
      '/v1/chat/completions',
      {
        model: 'm',
        stream: true,
        stream_options: { include_usage: false },
        messages,
        tools: [{ type: 'function', function: { name: 'f' } }],
        n: 1,
      },
    ],
    [
      '/api/chat',
      {
        model: 'm',
        messages: [{ role: 'user', content: '北京', images: ['iVBORw0KGgo='] }],
        options: { num_ctx: 4096 },
      },
    ],
    ['/api/generate', { model: 'm', prompt: 'hi', system: 's', raw: true, suffix: 'x' }],
  ] as const
  const nodes = [
    { kind: 'openai', native: ['openai'] },
    { kind: 'ollama', native: ['ollama'] },
  ] as const
  fc.assert(
    fc.property(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.nat(2)), { maxLength: 4 }),
      ([path, seed], mutations) => {
        const body = [...bytes(seed)]
        for (const [at, byte, how] of mutations)
          body.splice(at % body.length, how === 0 ? 0 : 1, ...(how === 2 ? [] : [byte]))
        try {
          const exchange = decodeArrival(arrivalOf(path, Uint8Array.from(body)))
          for (const { kind, native } of nodes)
            exchange.request({
              node: { name: 'n', kind, url: 'http://h', origin: 'configured', tags: [], distance: 0 },
              model: 'x',
              native,
              contextTokens: 8192,
            })
        } catch (error) {
          expect(error).toBeInstanceOf(RouterError)
        }
      },
    ),
    { numRuns: 3_000 },
  )
})

describe('the job', () => {
  test('counts text, tools and pictures', () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    const { job } = exchangeOf('/v1/chat/completions', {
      model: 'm',
      messages: [
        { role: 'system', content: 'x'.repeat(400) },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'y'.repeat(400) },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      tools,
    })

    expect(job.promptTokens).toEqual({
      value: Math.ceil((800 + JSON.stringify(tools).length) / 4) + 768,
      basis: 'estimated',
    })
    expect(job.needs).toEqual(['vision', 'tools'])
  })

  test.each([
    ['/v1/chat/completions', { messages }, 'openai', 'openai.chat', false, []],
    ['/v1/chat/completions', { messages, stream: true, tools: [] }, 'openai', 'openai.chat', true, []],
    ['/api/chat', { messages, think: true }, 'ollama', 'ollama.chat', true, ['thinking']],
    ['/api/chat', { messages, think: 'low', stream: false }, 'ollama', 'ollama.chat', false, []],
    ['/api/generate', { prompt: 'x', images: ['AAAA'] }, 'ollama', 'ollama.generate', true, ['vision']],
  ] as const)('of %s %j', (path, more, dialect, operation, stream, needs) => {
    expect(exchangeOf(path, { model: 'm', ...more }).job).toMatchObject({
      dialect,
      operation,
      stream,
      needs: [...needs],
      asked: 'm',
      models: ['m'],
    })
  })

  test('takes what the headers said', () => {
    const arrival = arrivalOf('/api/chat', JSON.stringify({ model: 'm', messages }), {
      priority: 'batch',
      pin: 'box',
      session: 'mine',
    })

    expect(decodeArrival(arrival).job).toMatchObject({ priority: 'batch', pin: 'box', session: 'mine' })
  })

  test.each(['', '[]'])('an OpenAI chat needs messages: %s', (list) => {
    const body = list === '' ? '{"model":"m"}' : `{"model":"m","messages":${list}}`

    expect(() => exchangeOf('/v1/chat/completions', body)).toThrow(RouterError)
  })
})

describe('the session', () => {
  const session = (model: string, turns: readonly (readonly [string, string])[], path = '/v1/chat/completions') =>
    exchangeOf(path, { model, messages: turns.map(([role, content]) => ({ role, content })) }).job.session

  const opening = [
    ['system', 'You are an agent.'],
    ['user', 'Fix the bug.'],
  ] as const

  test('is the same for every turn of a conversation, whatever the client speaks', () => {
    const later = [...opening, ['assistant', 'Done.'], ['user', 'Thanks.']] as const

    expect(session('m', later)).toBe(session('m', opening))
    expect(session('m:latest', opening, '/api/chat')).toBe(session('m', opening))
  })

  test('differs by model, by system text and by first turn', () => {
    const others = [
      session('n', opening),
      session('m', [['system', 'You are a poet.'], opening[1]]),
      session('m', [opening[0], ['user', 'Write a test.']]),
    ]

    expect(new Set([session('m', opening), ...others]).size).toBe(4)
  })

  test('differs by first turn even behind a system text longer than what is looked at', () => {
    const system = ['system', 'x'.repeat(100_000)] as const

    expect(session('m', [system, ['user', 'a']])).not.toBe(session('m', [system, ['user', 'b']]))
  })
})

test('BL-B05 a megabyte of picture is found without being walked like text', () => {
  const picture = Buffer.alloc(1_000_000, 'A').toString()
  const body = bytes({
    model: 'm',
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }] },
    ],
  })
  peek(body)

  const started = performance.now()
  for (let run = 0; run < 20; run++) peek(body)
  const millisecondsEach = (performance.now() - started) / 20

  // A parse takes several times as long; the bound is wide for slow machines.
  expect(millisecondsEach).toBeLessThan(3)
  expect(peek(body)).toMatchObject({ images: 1, textBytes: 0 })
})
