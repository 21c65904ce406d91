import { describe, expect, test } from 'bun:test'
import { RouterError } from '../../../src/domain/errors'
import type { ModelView } from '../../../src/ports/fleet'
import { isAnthropicClient, listAnthropicModels, oneAnthropicModel } from '../../../src/wire/anthropic-models'
import { oneModel } from '../../../src/wire/openai-models'

const now = 1_767_225_600_000

const view = (name: string): ModelView => ({
  name,
  key: name,
  nodes: [
    {
      node: 'box',
      name,
      online: true,
      state: 'resident',
      stored: { name, maxContextTokens: 40_960, capabilities: ['chat'] },
      resident: { name, state: 'ready', contextTokens: 16_384 },
    },
  ],
})

const models = ['a', 'b', 'c', 'd'].map(view)
const list = (query = '') => listAnthropicModels(models, now, new URLSearchParams(query))
const ids = (query: string) => (list(query).data as { id: string }[]).map(({ id }) => id).join('')

test('a model is one for clients of both protocols', () => {
  const { capabilities: _, ...openai } = oneModel(models[0] as ModelView, now)

  expect(oneAnthropicModel(models[0] as ModelView, now)).toEqual({
    ...openai,
    type: 'model',
    display_name: 'a',
    created_at: '2026-01-01T00:00:00.000Z',
    max_input_tokens: 16_384,
    max_tokens: null,
    capabilities: null,
  })
})

test('the list says where it begins and ends', () => {
  expect(list()).toMatchObject({ object: 'list', has_more: false, first_id: 'a', last_id: 'd' })
  expect(listAnthropicModels([], now, new URLSearchParams())).toMatchObject({
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  })
})

describe('pages', () => {
  test.each([
    ['', 'abcd', false],
    ['limit=2', 'ab', true],
    ['limit=2&after_id=b', 'cd', false],
    ['limit=1&after_id=b', 'c', true],
    ['after_id=d', '', false],
    ['limit=2&before_id=d', 'bc', true],
    ['limit=2&before_id=c', 'ab', false],
    ['limit=1000&after_id=nobody', 'abcd', false],
  ])('%s has %s', (query, expected, more) => {
    expect(ids(query)).toBe(expected)
    expect(list(query).has_more).toBe(more)
  })

  test.each(['0', '1001', '-1', 'x', '1.5'])('a limit of %s is refused', (limit) => {
    expect(() => list(`limit=${limit}`)).toThrow(RouterError)
  })
})

test.each([
  [{ 'anthropic-version': '2023-06-01' }, true],
  [{ 'x-api-key': 'k' }, true],
  [{ authorization: 'Bearer k' }, false],
  [{}, false],
])('headers %p are those of an Anthropic client: %p', (headers, expected) => {
  expect(isAnthropicClient(new Headers(headers as Record<string, string>))).toBe(expected)
})
