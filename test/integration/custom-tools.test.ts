import { describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { fastModel, type FakeSpec } from '../support/fakes'
import type { Bench } from '../support/router'
import { asked, type Json, kinds, openAiChat, ask, quietly, settledRecord } from './clients'

const able = fastModel('m', { capabilities: ['chat', 'completion', 'tools', 'thinking'] })
const hot = (kind: FakeSpec['kind']): FakeSpec => ({ kind, resident: ['m'], models: [able] })

const clientOf = (bench: Bench): OpenAI => new OpenAI({ baseURL: `${bench.url}/v1`, apiKey: 'unused', maxRetries: 0 })

const patch = { type: 'custom' as const, custom: { name: 'apply_patch', description: 'Edits a file.' } }
const question = { model: 'm', tools: [patch], messages: [{ role: 'user' as const, content: 'call apply_patch' }] }
const sent = (bench: Bench, index = 0): Json => asked(bench.fakes[0] as never)[index]?.body

describe('a custom tool of the OpenAI client on an Ollama node', () => {
  test('is called, and the result goes back', () =>
    quietly([hot('ollama')], {}, async (bench) => {
      const client = clientOf(bench)
      const first = await client.chat.completions.create(question)
      const [call] = first.choices[0]?.message.tool_calls ?? []
      if (call?.type !== 'custom') throw new Error('no call of a custom tool')
      await client.chat.completions.create({
        ...question,
        messages: [
          ...question.messages,
          { role: 'assistant', tool_calls: [call] },
          { role: 'tool', tool_call_id: call.id, content: 'done' },
        ],
      })

      expect(call.custom).toEqual({ name: 'apply_patch', input: 'sample' })
      expect(first.choices[0]?.finish_reason).toBe('tool_calls')
      expect(sent(bench).tools[0].function).toMatchObject({ name: 'apply_patch', description: 'Edits a file.' })
      expect(sent(bench, 1).messages[1].tool_calls[0].function).toMatchObject({
        name: 'apply_patch',
        arguments: { input: 'sample' },
      })
      expect(sent(bench, 1).messages[2]).toMatchObject({ role: 'tool', tool_name: 'apply_patch', content: 'done' })
    }))

  test('is called in a stream, too', () =>
    quietly([hot('ollama')], {}, async (bench) => {
      const calls: Json[] = []
      for await (const { choices } of await clientOf(bench).chat.completions.create({ ...question, stream: true }))
        calls.push(...(choices[0]?.delta.tool_calls ?? []))

      expect(calls).toEqual([
        { index: 0, id: expect.any(String), type: 'custom', custom: { name: 'apply_patch', input: '' } },
        { index: 0, custom: { input: 'sample' } },
      ])
    }))
})

describe('a stream that thinks until its tokens run out', () => {
  test.each(kinds)('BL-P10 is told apart in the record: %s', (kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const reply = await ask(bench.url, openAiChat, { more: { max_tokens: 4 } })

      expect(openAiChat.text(await reply.text())).toBe('')
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', thinkingExhausted: true })
    }),
  )
})
