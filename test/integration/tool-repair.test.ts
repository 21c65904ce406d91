import { describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { fastModel } from '../support/fakes'
import { answer, chunk, chunkedHead, LAST_CHUNK, type RawServer, startRawServer } from '../support/raw-server'
import type { Bench } from '../support/router'
import {
  anthropicMessages,
  ask,
  type Json,
  kinds,
  ollamaChat,
  openAiChat,
  quietly,
  settledRecord,
  type Shape,
} from './clients'

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const weather = { type: 'function' as const, function: { name: 'weather', parameters } }
const broken = `{'city': "Pa\\d"`
const repaired = { city: 'Pa\\d' }

const event = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const call = (given: object): string => event({ tool_calls: [{ index: 0, ...given }] })
const head = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }

const streamOf = (args: string, length: number): string =>
  event({ role: 'assistant', content: '' }) +
  event({ content: 'Let me see.' }) +
  call(head) +
  (args.match(new RegExp(`.{1,${length}}`, 'gs')) ?? [])
    .map((part) => call({ function: { arguments: part } }))
    .join('') +
  event({}, 'tool_calls') +
  'data: [DONE]\n\n'

const wholeOf = (args: string): string => {
  const calls = [{ ...head, function: { name: 'weather', arguments: args } }]
  const message = { role: 'assistant', content: null, tool_calls: calls }
  return JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
}

/** An engine whose model writes such arguments, one byte in each piece of its answer. */
const engineThat = (args: string, length = 1): RawServer =>
  startRawServer((connection, { head: asked, body }) => {
    if (asked.startsWith('GET /v1/models')) return connection.send(answer('{"object":"list","data":[{"id":"m"}]}'))
    if (asked.startsWith('GET')) return connection.send(answer('{}'))
    if (!body.includes('"stream":true')) return connection.send(answer(wholeOf(args)))
    connection.send(chunkedHead())
    for (const byte of streamOf(args, length)) connection.send(chunk(byte))
    connection.send(LAST_CHUNK)
  })

const withEngine = async (
  engine: RawServer,
  repairToolCalls: boolean,
  run: (bench: Bench) => Promise<void>,
): Promise<void> => {
  const setup = { server: { repairToolCalls }, describe: () => ({ kind: 'openai' as const, url: engine.url }) }
  await quietly([{ kind: 'openai' }], setup, run)
  engine.stop()
}

const jsons = (records: Json[], pick: (record: Json) => string | undefined): string =>
  records.map((each) => pick(each) ?? '').join('')

/** The arguments of the one call in a streamed answer, as JSON text. */
const argumentsIn = new Map<Shape, (records: Json[]) => string>([
  [openAiChat, (records) => jsons(records, ({ choices }) => choices[0]?.delta.tool_calls?.[0].function.arguments)],
  [anthropicMessages, (records) => jsons(records, ({ delta }) => delta?.partial_json)],
  [
    ollamaChat,
    (records) =>
      jsons(records, ({ message }) => message?.tool_calls && JSON.stringify(message.tool_calls[0].function.arguments)),
  ],
])

const toolsOf = (shape: Shape): object[] =>
  shape === anthropicMessages ? [{ name: 'weather', input_schema: parameters }] : [weather]

describe('with server.repair_tool_calls broken arguments are repaired', () => {
  test.each([...argumentsIn].map(([shape, read]) => [shape.name, shape, read] as const))(
    'in streams: %s',
    (_, shape, read) =>
      withEngine(engineThat(broken), true, async (bench) => {
        const reply = await ask(bench.url, shape, { more: { tools: toolsOf(shape) } })
        const body = await reply.text()

        expect(JSON.parse(read(shape.records(body)))).toEqual(repaired)
        expect(shape.text(body)).toBe('Let me see.')
        expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', toolCallsRepaired: 1 })
      }),
  )

  test('wherever the model cuts them, for the OpenAI client as well', async () => {
    for (let length = 1; length <= broken.length; length++)
      await withEngine(engineThat(broken, length), true, async (bench) => {
        const client = new OpenAI({ baseURL: `${bench.url}/v1`, apiKey: 'unused', maxRetries: 0 })
        const stream = client.chat.completions.stream({
          model: 'm',
          messages: [{ role: 'user', content: 'hi' }],
          tools: [weather],
        })
        const { choices } = await stream.finalChatCompletion()
        const [made] = choices[0]?.message.tool_calls ?? []

        expect(made?.type === 'function' && JSON.parse(made.function.arguments)).toEqual(repaired)
        expect(made?.id).toBe('call_1')
      })
  })

  test('in answers that come whole, and counted by node and model', () =>
    withEngine(engineThat(broken), true, async (bench) => {
      const reply = (await (await bench.chat({ stream: false, more: { tools: [weather] } })).json()) as Json
      await settledRecord(bench)

      expect(JSON.parse(reply.choices[0].message.tool_calls[0].function.arguments)).toEqual(repaired)
      expect(await bench.metrics()).toMatch(/^fleet_tool_calls_repaired_total\{node="a",model="m"\} 1$/m)
    }))

  test('but not where the schema refuses the result', () =>
    withEngine(engineThat(`{'town': "Paris"`), true, async (bench) => {
      const more = { tools: [weather], stream_options: { include_usage: true } }

      expect(await (await bench.chat({ more })).text()).toBe(streamOf(`{'town': "Paris"`, 1))
      expect((await settledRecord(bench)).outcome).not.toHaveProperty('toolCallsRepaired')
    }))
})

test('without it they pass byte for byte', () =>
  withEngine(engineThat(broken), false, async (bench) => {
    const more = { tools: [weather], stream_options: { include_usage: true } }

    expect(await (await bench.chat({ more })).text()).toBe(streamOf(broken, 1))
    expect(await bench.metrics()).not.toContain('fleet_tool_calls_repaired_total{')
  }))

test.each(kinds)('whole arguments are as they are with it: %s', (kind) =>
  quietly([{ kind, resident: ['m'], models: [fastModel()] }], { server: { repairToolCalls: true } }, async (bench) => {
    const client = new OpenAI({ baseURL: `${bench.url}/v1`, apiKey: 'unused', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'call weather' }]
    const { choices } = await client.chat.completions
      .stream({ model: 'm', messages, tools: [weather] })
      .finalChatCompletion()
    const [made] = choices[0]?.message.tool_calls ?? []

    expect(made?.type === 'function' && made.function.arguments).toBe('{"city":"sample"}')
    expect((await settledRecord(bench)).outcome).not.toHaveProperty('toolCallsRepaired')
  }),
)
