import { expect, test } from 'bun:test'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { numberedWords } from '../../../src/sim/fake/question'
import { fastModel, withFakes } from '../../support/fakes'

const messages = [{ role: 'user' as const, content: 'hello' }]
const words = numberedWords('hello', 16).join('')

test('the OpenAI client lists, chats, streams, completes and embeds', () =>
  withFakes(
    [
      { kind: 'llamacpp', apiKey: 'k' },
      { kind: 'openai', apiKey: 'k' },
    ],
    async (...fakes) => {
      for (const fake of fakes) {
        const client = new OpenAI({ baseURL: `${fake.url}/v1`, apiKey: 'k', maxRetries: 0 })
        expect((await client.models.list()).data.map((model) => model.id)).toEqual(['m'])

        const whole = await client.chat.completions.create({ model: 'm', messages })
        expect(whole.choices[0]!.message.content).toBe(words)

        let text = ''
        let tokens = 0
        for await (const chunk of await client.chat.completions.create({
          model: 'm',
          messages,
          stream: true,
          stream_options: { include_usage: true },
        })) {
          text += chunk.choices[0]?.delta.content ?? ''
          tokens = chunk.usage?.completion_tokens ?? tokens
        }
        expect([text, tokens]).toEqual([words, 16])

        const completion = await client.completions.create({ model: 'm', prompt: 'hello' })
        expect(completion.choices[0]!.text).toBe(words)

        const embedding = await client.embeddings.create({ model: 'm', input: 'hello' })
        expect(Math.hypot(...embedding.data[0]!.embedding)).toBeCloseTo(1)
      }
    },
  ))

test('the OpenAI client collects a streamed tool call', () =>
  withFakes([{ kind: 'ollama' }], async (fake) => {
    const client = new OpenAI({ baseURL: `${fake!.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const stream = client.chat.completions.stream({
      model: 'm',
      messages: [{ role: 'user', content: 'call now' }],
      tools: [
        {
          type: 'function',
          function: { name: 'now', parameters: { type: 'object', properties: { zone: { type: 'string' } } } },
        },
      ],
    })
    const { choices } = await stream.finalChatCompletion()

    expect(choices[0]!.finish_reason).toBe('tool_calls')
    expect(choices[0]!.message.tool_calls![0]).toMatchObject({
      function: { name: 'now', arguments: '{"zone":"sample"}' },
    })
  }))

test('the Ollama client lists, shows, chats, generates, embeds and unloads', () =>
  withFakes([{ kind: 'ollama', models: [fastModel('m', { capabilities: ['chat', 'embedding'] })] }], async (fake) => {
    const client = new Ollama({ host: fake!.url })
    expect((await client.list()).models[0]!.name).toBe('m:latest')
    expect((await client.show({ model: 'm' })).capabilities).toEqual(['completion', 'embedding'])
    expect((await client.chat({ model: 'm', messages })).message.content).toBe(words)

    let text = ''
    for await (const part of await client.generate({ model: 'm', prompt: 'hello', stream: true })) text += part.response
    expect(text).toBe(words)

    expect((await client.embed({ model: 'm', input: ['a', 'b'] })).embeddings).toHaveLength(2)
    expect((await client.ps()).models).toHaveLength(1)
    await client.generate({ model: 'm', prompt: '', keep_alive: 0 })
    expect((await client.ps()).models).toEqual([])
    expect(client.chat({ model: 'x', messages })).rejects.toThrow("model 'x' not found")
  }))
