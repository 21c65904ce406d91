import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../../../src/wire/canonical'
import { createOllamaStreamWriter } from '../../../src/wire/ollama-writer'
import { createOpenAiStreamWriter, createOpenAiWholeWriter } from '../../../src/wire/openai-writer'
import type { ReplyWriter } from '../../../src/wire/replies'
import { timing } from './golden'

const answer = { request: 'req_1', created: 7, model: 'm', includeUsage: false }
const told = (writer: ReplyWriter, events: readonly ReplyEvent[]): string =>
  [...events.map((event) => writer.write(event)), writer.end()].join('')

const fragments: readonly ReplyEvent[] = [
  { type: 'call', index: 0, id: 'call_1', name: 'f', arguments: '' },
  { type: 'arguments', index: 0, fragment: '{"a"' },
  { type: 'arguments', index: 0, fragment: ':1}' },
  { type: 'finish', reason: 'tool_calls' },
]

test('fragments of a call go to OpenAI clients as they come, joined by their index', () => {
  const events = told(createOpenAiStreamWriter(answer), fragments).split('\n\n')

  expect(
    events.map((event) => /"tool_calls":\[(.*?)\]\},/.exec(event)?.[1]).filter((call) => call !== undefined),
  ).toEqual([
    '{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}',
    '{"index":0,"function":{"arguments":"{\\"a\\""}}',
    '{"index":0,"function":{"arguments":":1}"}}',
  ])
})

test('an answer in one piece joins them', () => {
  const { choices } = JSON.parse(told(createOpenAiWholeWriter(answer), fragments))

  expect(choices[0].message.tool_calls[0].function.arguments).toBe('{"a":1}')
})

test('Ollama clients get the call whole', () => {
  const [call] = told(createOllamaStreamWriter({ model: 'm', endpoint: 'chat', timing: timing() }), fragments).split(
    '\n',
  )

  expect(JSON.parse(call ?? '').message.tool_calls).toEqual([
    { id: 'call_1', function: { index: 0, name: 'f', arguments: { a: 1 } } },
  ])
})

test('a node that ends without a finish reason still gets its client one', () => {
  expect(told(createOpenAiStreamWriter(answer), [{ type: 'text', text: 'a' }, { type: 'done' }])).toContain(
    '"finish_reason":"stop"',
  )
})
