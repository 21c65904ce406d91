import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, jsonSchema, type LanguageModel, streamText, tool } from 'ai'
import { createOllama } from 'ai-sdk-ollama'
import { Ollama } from 'ollama'
import { binary, buildTimeoutMs } from '../support/binary'
import { describeWithEngine } from '../support/engine'
import { readUntil } from '../support/read-until'
import { callFor, describeToolRounds, weatherTool } from './two-fakes'
import { expectLeavingStops, model, type Rig, startRig, startTimeoutMs } from './two-llamas'

/** A provider of the AI SDK, and what it sends when it is left where its abort signal alone does not reach the wire. */
interface Provider {
  readonly name: string
  of(url: string, model: string, left?: AbortSignal): LanguageModel
}

const providers: readonly Provider[] = [
  {
    name: '@ai-sdk/openai, chat',
    of: (url, name) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'unused' }).chat(name),
  },
  {
    name: '@ai-sdk/openai, responses',
    of: (url, name) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'unused' }).responses(name),
  },
  { name: '@ai-sdk/anthropic', of: (url, name) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'unused' })(name) },
  {
    name: 'ai-sdk-ollama',
    of(url, name, left) {
      // The client under it takes no signal per request, so that is how its users abort.
      const client = new Ollama({ host: url })
      left?.addEventListener('abort', () => client.abort(), { once: true })
      return createOllama({ client })(name)
    },
  },
]

const weather = tool({
  description: weatherTool.description,
  inputSchema: jsonSchema<{ city: string }>(weatherTool.parameters),
  execute: ({ city }) => ({ city, sky: 'rain' }),
})

const thrown = (asking: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(asking).then(
    () => undefined,
    (error: unknown) => error,
  )

describeWithEngine('AI SDK, two llama-servers', () => {
  let rig: Rig

  beforeAll(async () => {
    await binary()
    rig = await startRig()
  }, buildTimeoutMs + startTimeoutMs)
  afterAll(() => rig?.stop())

  describe.each(providers)('$name', ({ of }) => {
    const ask = (prompt: string, name = model) => ({
      model: of(rig.fleet.url, name),
      prompt,
      maxOutputTokens: 8,
      maxRetries: 0,
    })

    test('answers whole, with its end and the usage of the engine', async () => {
      const { text, finishReason, usage } = await generateText(ask('Say hello.'))

      expect(text).not.toBe('')
      expect(['stop', 'length']).toContain(finishReason)
      expect(usage.inputTokens).toBeGreaterThan(10)
      expect(usage.outputTokens).toBeGreaterThan(0)
    })

    test('streams in pieces, up to the end and the usage', async () => {
      const stream = streamText(ask('Say hello.'))
      const parts = await Array.fromAsync(stream.fullStream)

      expect(parts.filter(({ type }) => type === 'text-delta').length).toBeGreaterThan(1)
      expect(parts.map(({ type }) => type)).not.toContain('error')
      expect(parts.at(-1)).toMatchObject({ type: 'finish', totalUsage: { outputTokens: expect.any(Number) } })
      expect(['stop', 'length']).toContain(await stream.finishReason)
    })

    test('a client that leaves stops the computation at the engine within a second', async () => {
      const leaving = new AbortController()
      const stream = streamText({
        ...ask('Count in words, one number after the other.'),
        model: of(rig.fleet.url, model, leaving.signal),
        maxOutputTokens: 1_500,
        abortSignal: leaving.signal,
        onError: () => {},
      })
      await readUntil(stream.fullStream, ({ type }) => type === 'text-delta')

      await expectLeavingStops(rig, () => leaving.abort())
    })

    test('an unknown model, a prompt that is too long and tools without a place for them say what is wrong', async () => {
      const unknown = await thrown(generateText(ask('Hi.', 'nobody-has-this')))
      const tooLong = await thrown(generateText(ask('word '.repeat(4_000))))
      const withTools = await thrown(generateText({ ...ask('Weather in Oslo?'), tools: { weather } }))

      expect(String(unknown)).toContain("The model 'nobody-has-this' does not exist on any node.")
      expect(String(tooLong)).toContain('(4031 tokens) exceeds')
      expect(String(withTools)).toContain("'smollm2' does not support tools.")
      const statuses = [unknown, tooLong, withTools].map((error) => statusOf(error))
      expect(statuses).toEqual([404, 400, 400])
    })
  })
})

/** The SDK's own error has it; that of the Ollama provider carries the client's error as its cause. */
const statusOf = (error: unknown): number | undefined => {
  const { statusCode, status_code, cause } = error as { statusCode?: number; status_code?: number; cause?: unknown }
  return statusCode ?? status_code ?? (cause === undefined ? undefined : statusOf(cause))
}

describe('AI SDK with tools, unlike engines', () => {
  describeToolRounds(providers, async ({ of }, url, name) => {
    const ask = {
      model: of(url, name),
      prompt: callFor('weather'),
      tools: { weather },
      stopWhen: isStepCount(2),
      maxOutputTokens: 64,
      maxRetries: 0,
    }
    const whole = await generateText(ask)
    const streamed = streamText(ask)

    const runs = [
      { steps: whole.steps, text: whole.text },
      { steps: await streamed.steps, text: await streamed.text },
    ]
    for (const { steps, text } of runs) {
      expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
      expect(steps[0]?.toolCalls).toMatchObject([{ toolName: 'weather', input: { city: 'sample' } }])
      expect(steps[0]?.toolResults).toMatchObject([{ output: { city: 'sample', sky: 'rain' } }])
      expect(text).toStartWith('tok1.')
    }
  })
})
