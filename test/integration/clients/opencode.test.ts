import { describe, expect, test } from 'bun:test'
import type { Bench } from '../../support/router'
import { type Json, kinds, quietly } from '../clients'
import { able, clientAt, eventsOf } from './wire'

const session = 'ses_0123456789abcdef'
const client = ({ url }: Bench) =>
  clientAt(url, {
    authorization: 'Bearer unused',
    'user-agent': 'opencode/1.4.0 ai-sdk/provider-utils/4.0.0 runtime/bun/1.3.0',
    'x-session-affinity': session,
    'x-session-id': session,
  })

const parameters = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { filePath: { type: 'string' }, limit: { type: 'number' } },
  required: ['filePath'],
  additionalProperties: false,
}
const tools = ['bash', 'edit', 'read'].map((name) => ({
  type: 'function',
  function: { name, description: `The tool ${name}`, parameters },
}))

const turn = {
  model: 'm',
  max_tokens: 32_000,
  messages: [
    { role: 'system', content: 'Work on code.' },
    { role: 'user', content: [{ type: 'text', text: 'Please call read' }] },
  ],
  tools,
  tool_choice: 'auto',
  stream: true,
  stream_options: { include_usage: true },
}

const title = {
  model: 'm',
  max_tokens: 32_000,
  temperature: 0.5,
  messages: [
    { role: 'system', content: 'Name this.' },
    { role: 'user', content: 'Make a title:' },
    { role: 'user', content: [{ type: 'text', text: 'Please read' }] },
  ],
  stream: true,
  stream_options: { include_usage: true },
}

/** The chunks as its library checks them. */
const chunksOf = (body: string): readonly Json[] => {
  const events = eventsOf(body).map(({ data }) => data)
  expect(events.at(-1)).toBe('[DONE]')
  const chunks = events.slice(0, -1)
  for (const { choices } of chunks)
    for (const { delta } of choices) {
      expect(['assistant', '', undefined]).toContain(delta.role)
      for (const call of delta.tool_calls ?? []) expect(call.index).toBeNumber()
    }
  return chunks
}

const deltasOf = (chunks: readonly Json[]): readonly Json[] => chunks.flatMap(({ choices }) => choices[0]?.delta ?? [])
const finishOf = (chunks: readonly Json[]): Json =>
  chunks.findLast(({ choices }) => choices[0]?.finish_reason)?.choices[0]

describe.each(kinds)('at %s', (kind) => {
  test('the title and the first turn are asked for at once, and both stream to their end', () =>
    quietly([able(kind)], {}, async (bench) => {
      const { post } = client(bench)
      const answers = await Promise.all([title, turn].map((body) => post('/v1/chat/completions', body)))
      const [named = [], answered = []] = await Promise.all(answers.map(async (each) => chunksOf(await each.text())))

      for (const { status, headers } of answers) {
        expect(status).toBe(200)
        expect(headers.get('content-type')).toStartWith('text/event-stream')
      }
      expect(
        deltasOf(named)
          .map(({ content }) => content ?? '')
          .join(''),
      ).not.toBe('')
      expect(finishOf(named).finish_reason).toBe('stop')
      expect(finishOf(answered).finish_reason).toBe('tool_calls')
      // It shows what a turn took of the window from this chunk.
      for (const chunks of [named, answered])
        expect(chunks.at(-1)).toMatchObject({
          choices: [],
          usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) },
        })
    }))

  test('the call of a tool begins with its id and name, and its pieces make one object', () =>
    quietly([able(kind)], {}, async (bench) => {
      const answer = await client(bench).post('/v1/chat/completions', turn)
      const calls = deltasOf(chunksOf(await answer.text())).flatMap(({ tool_calls }) => tool_calls ?? [])

      expect(calls[0]).toMatchObject({
        index: 0,
        id: expect.stringMatching(/./),
        type: 'function',
        function: { name: 'read' },
      })
      expect(JSON.parse(calls.map((call) => call.function.arguments ?? '').join(''))).toMatchObject({
        filePath: 'sample',
      })
    }))

  test('the turn after it, with reasoning kept and the result of the tool, is answered in text', () =>
    quietly([able(kind)], {}, async (bench) => {
      const call = { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"filePath":"a.ts"}' } }
      const messages = [
        ...turn.messages,
        { role: 'assistant', content: '', reasoning_content: 'A file.', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: '1' },
      ]

      const answer = await client(bench).post('/v1/chat/completions', { ...turn, messages })
      const chunks = chunksOf(await answer.text())

      expect(
        deltasOf(chunks)
          .map(({ content }) => content ?? '')
          .join(''),
      ).not.toBe('')
      expect(finishOf(chunks).finish_reason).toBe('stop')
    }))
})

test('an error has the message that its library looks for', () =>
  quietly([able('llamacpp')], {}, async (bench) => {
    const answer = await client(bench).post('/v1/chat/completions', { ...turn, model: 'nobody' })

    expect(answer.status).toBe(404)
    expect(((await answer.json()) as Json).error).toMatchObject({
      message: expect.any(String),
      type: expect.any(String),
    })
  }))
