import { describe, expect, test } from 'bun:test'
import type { Bench } from '../../support/router'
import { type Json, kinds, quietly } from '../clients'
import { able, clientAt, embedding } from './wire'

const client = ({ url }: Bench) => clientAt(url, { authorization: 'Bearer unused', 'user-agent': 'node-fetch' })
const linesOf = (body: string): Json[] =>
  body
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** A line of `parameters` as it takes it apart; one of another shape makes it give up on the whole answer. */
const parameter = /^(\S+)\s+((?:".*")|\S+)$/

const tools = [
  {
    type: 'function',
    function: { name: 'read_file', description: 'Reads', parameters: { type: 'object', properties: {} } },
  },
]

describe.each(kinds)('at %s', (kind) => {
  test('it finds the models by itself, then asks about each by its older name', () =>
    quietly([able(kind)], {}, async (bench) => {
      const { get, post } = client(bench)
      const { models } = (await (await get('/api/tags')).json()) as Json
      const shown = await post('/api/show', { name: models[0].name })
      const { parameters, template, model_info, capabilities } = (await shown.json()) as Json
      const lines = parameters === '' ? [] : parameters.split('\n')

      expect(shown.status).toBe(200)
      expect(lines.every((line: string) => parameter.test(line))).toBe(true)
      expect(template).toBeString()
      expect(model_info['general.architecture']).toBeString()
      expect(capabilities).toContain('completion')
    }))

  test('a turn with tools comes whole, with arguments as an object; nothing is loaded anew for the window it was told', () =>
    quietly([able(kind)], {}, async (bench) => {
      const { post } = client(bench)
      const shown = (await (await post('/api/show', { name: 'm' })).json()) as Json
      const window = Number(/^num_ctx (\d+)$/m.exec(shown.parameters)?.[1] ?? 8_192)
      const options = { num_ctx: window, num_predict: 4_096, stop: ['<|end|>'] }
      const messages = [
        { role: 'system', content: 'Work on code.' },
        { role: 'user', content: 'Please call read_file' },
      ]

      const answer = await post('/api/chat', { model: 'm', messages, tools, options, keep_alive: 1_800, stream: false })
      const { message, done } = (await answer.json()) as Json

      expect(answer.status).toBe(200)
      expect(done).toBe(true)
      expect(message).toMatchObject({
        role: 'assistant',
        content: expect.any(String),
        tool_calls: [{ function: { name: 'read_file', arguments: {} } }],
      })
      expect(bench.fakes[0]?.loads ?? []).toEqual([])
    }))

  test('the turn after it streams, line by line', () =>
    quietly([able(kind)], {}, async (bench) => {
      const messages = [
        { role: 'user', content: 'Read it.' },
        { role: 'assistant', content: '', tool_calls: [{ function: { name: 'read_file', arguments: {} } }] },
        { role: 'tool', content: '1' },
      ]

      const answer = await client(bench).post('/api/chat', { model: 'm', messages, keep_alive: 1_800, stream: true })
      const lines = linesOf(await answer.text())

      expect(lines.every(({ message }) => message.role === 'assistant')).toBe(true)
      expect(lines.map(({ message }) => message.content).join('')).not.toBe('')
      expect(lines.at(-1)?.done).toBe(true)
    }))
})

describe('filling in the middle', () => {
  test('it sees in the template that the model can, and has it done', () =>
    quietly([able('ollama')], {}, async (bench) => {
      const { post } = client(bench)
      const { template } = (await (await post('/api/show', { name: 'm' })).json()) as Json
      const asked = { model: 'm', prompt: 'const a =', suffix: '\nlog(a)', options: { num_predict: 64 }, stream: true }
      const answer = await post('/api/generate', { ...asked, keep_alive: 1_800 })
      const lines = linesOf(await answer.text())

      expect(template).toContain('.Suffix')
      expect(lines.every(({ response }) => typeof response === 'string')).toBe(true)
      expect(lines.at(-1)?.done).toBe(true)
    }))

  test.each(kinds)('else it writes the whole prompt itself, which no template touches: %s', (kind) =>
    quietly([able(kind)], {}, async (bench) => {
      const answer = await client(bench).post('/api/generate', {
        model: 'm',
        prompt: '<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>',
        raw: true,
        options: { num_predict: 16, stop: ['<|endoftext|>'] },
        stream: true,
      })
      const lines = linesOf(await answer.text())

      expect(answer.status).toBe(200)
      expect(lines.map(({ response }) => response ?? '').join('')).not.toBe('')
      expect(lines.at(-1)?.done).toBe(true)
    }),
  )
})

test('its index of the code is embedded in batches', () =>
  quietly([embedding()], {}, async (bench) => {
    const input = Array.from({ length: 64 }, (_, index) => `chunk ${index}`)
    const answer = await client(bench).post('/api/embed', { model: 'e', input })

    expect(((await answer.json()) as Json).embeddings).toHaveLength(64)
  }))
