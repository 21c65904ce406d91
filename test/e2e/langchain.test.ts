import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ChatAnthropic } from '@langchain/anthropic'
import { ContextOverflowError } from '@langchain/core/errors'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import {
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  ToolMessage,
  type UsageMetadata,
} from '@langchain/core/messages'
import { ChatOllama } from '@langchain/ollama'
import { ChatOpenAI } from '@langchain/openai'
import { binary, buildTimeoutMs } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { readUntil } from '../support/read-until'
import { callFor, describeToolRounds, weatherTool } from './two-fakes'
import { expectLeavingStops, model, type Rig, startRig, startTimeoutMs } from './two-llamas'

interface Integration {
  readonly name: string
  /** Recognises a prompt that is too long by itself; the one for Ollama has no notion of it. */
  readonly knowsOverflow: boolean
  of(url: string, model: string, maxTokens?: number): BaseChatModel
}

const openAi = (url: string, name: string, maxTokens: number, useResponsesApi: boolean) =>
  new ChatOpenAI({
    model: name,
    maxTokens,
    useResponsesApi,
    apiKey: 'unused',
    maxRetries: 0,
    configuration: { baseURL: `${url}/v1` },
  })

const integrations: readonly Integration[] = [
  {
    name: '@langchain/openai, chat',
    knowsOverflow: true,
    of: (url, name, maxTokens = 8) => openAi(url, name, maxTokens, false),
  },
  {
    name: '@langchain/openai, responses',
    knowsOverflow: true,
    of: (url, name, maxTokens = 8) => openAi(url, name, maxTokens, true),
  },
  {
    name: '@langchain/anthropic',
    knowsOverflow: true,
    of: (url, name, maxTokens = 8) =>
      new ChatAnthropic({ model: name, maxTokens, apiKey: 'unused', maxRetries: 0, anthropicApiUrl: url }),
  },
  {
    name: '@langchain/ollama',
    knowsOverflow: false,
    of: (url, name, numPredict = 8) => new ChatOllama({ model: name, numPredict, maxRetries: 0, baseUrl: url }),
  },
]

const withWeather = (chat: BaseChatModel) => {
  if (chat.bindTools === undefined) throw new Error('the integration takes no tools')
  return chat.bindTools([{ type: 'function', function: weatherTool }])
}

const thrown = (asking: Promise<unknown>): Promise<unknown> =>
  asking.then(
    () => undefined,
    (error: unknown) => error,
  )

const joined = ([first, ...rest]: readonly AIMessageChunk[]): AIMessageChunk => {
  if (first === undefined) throw new Error('an empty stream')
  return rest.reduce((all, chunk) => all.concat(chunk), first)
}

/** Its type depends on the integration, which a table of them forgets. */
const usageOf = ({ usage_metadata }: AIMessageChunk) => usage_metadata as UsageMetadata | undefined

describeWithEngine('LangChain, two llama-servers', () => {
  let rig: Rig

  beforeAll(async () => {
    await binary()
    rig = await startRig()
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  describe.each(integrations)('$name', ({ of, knowsOverflow }) => {
    test('answers whole, with the usage of the engine', async () => {
      const answer = await of(rig.fleet.url, model).invoke('Say hello.')

      expect(answer.text).not.toBe('')
      expect(usageOf(answer)?.input_tokens).toBeGreaterThan(10)
      expect(usageOf(answer)?.output_tokens).toBeGreaterThan(0)
    })

    test('streams in pieces that add up, usage included', async () => {
      const chunks = await Array.fromAsync(await of(rig.fleet.url, model).stream('Say hello.'))

      expect(chunks.filter(({ text }) => text !== '').length).toBeGreaterThan(1)
      expect(usageOf(joined(chunks))?.output_tokens).toBeGreaterThan(0)
    })

    test('a client that leaves stops the computation at the engine within a second', async () => {
      const leaving = new AbortController()
      const stream = await of(rig.fleet.url, model, 1_500).stream('Count in words, one number after the other.', {
        signal: leaving.signal,
      })
      await readUntil(stream, ({ text }) => text !== '')

      await expectLeavingStops(rig, () => leaving.abort())
    })

    test('an unknown model, a prompt that is too long and tools without a place for them say what is wrong', async () => {
      const chat = of(rig.fleet.url, model)
      const unknown = await thrown(of(rig.fleet.url, 'nobody-has-this').invoke('Hi.'))
      const tooLong = await thrown(chat.invoke('word '.repeat(4_000)))
      const withTools = await thrown(withWeather(chat).invoke('Weather in Oslo?'))

      expect(String(unknown)).toContain("The model 'nobody-has-this' does not exist on any node.")
      expect(String(tooLong)).toContain('(4031 tokens) exceeds')
      expect(ContextOverflowError.isInstance(tooLong)).toBe(knowsOverflow)
      expect(String(withTools)).toContain("'smollm2' does not support tools.")
    })
  })
})

describe('LangChain with tools, unlike engines', () => {
  describeToolRounds(integrations, async ({ of }, url, name) => {
    const chat = withWeather(of(url, name, 64))
    const asked: BaseMessage[] = [new HumanMessage(callFor('weather'))]
    const whole = await chat.invoke(asked)
    const streamed = joined(await Array.fromAsync(await chat.stream(asked)))

    for (const told of [whole, streamed]) {
      const [call, ...others] = told.tool_calls ?? []
      expect(call).toMatchObject({ name: 'weather', args: { city: 'sample' } })
      expect(others).toEqual([])

      const answer = await chat.invoke([...asked, told, new ToolMessage('Rain.', call?.id ?? '', 'weather')])
      expect(answer.text).toStartWith('tok1.')
    }
  })
})
