import { expect, test } from 'bun:test'
import { repairArguments } from '../../../../src/wire/repair/arguments'

const city = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const open = { type: 'object' }

test.each<[string, unknown]>([
  [`{"city": "Paris"`, { city: 'Paris' }],
  [`{"city": "Paris",}`, { city: 'Paris' }],
  [`{'city': 'Paris'}`, { city: 'Paris' }],
  [`{city: "Paris"}`, { city: 'Paris' }],
  ['```json\n{"city": "Paris"}\n```', { city: 'Paris' }],
  [`{"city": "Paris"}}`, { city: 'Paris' }],
  [`"{\\"city\\": \\"Paris\\"}"`, { city: 'Paris' }],
  [`{\\"city\\": \\"Paris\\"}`, { city: 'Paris' }],
  [`{"city": "Paris\nTexas"}`, { city: 'Paris\nTexas' }],
  [`{"city": "the "big" one"}`, { city: 'the "big" one' }],
  [`{"city": "it\\'s"}`, { city: "it's" }],
])('%s is repaired', (text, expected) => {
  const repaired = repairArguments(text, city)

  expect(JSON.parse(repaired ?? 'null')).toEqual(expected)
})

test('True, False and None are those of JSON', () => {
  expect(JSON.parse(repairArguments('{"a": True, "b": None}', open) ?? '')).toEqual({ a: true, b: null })
})

test.each([
  [String.raw`{"city": "\d+\.\w"}`, String.raw`\d+\.\w`],
  [String.raw`{"city": "C:\Users\Public"}`, String.raw`C:\Users\Public`],
  [String.raw`{"city": "a\\d \"b\" \u00e9 \d"}`, `a\\d "b" é \\d`],
])('a backslash that escapes nothing stands for itself: %s', (text, expected) => {
  expect(JSON.parse(repairArguments(text, city) ?? '')).toEqual({ city: expected })
})

test('no text at all is a call without arguments, where the tool needs none', () => {
  expect(repairArguments(' ', open)).toBe('{}')
  expect(repairArguments('', city)).toBeUndefined()
})

test('large numbers keep all their digits', () => {
  expect(repairArguments('{"n": 12345678901234567890,}', open)).toBe('{"n": 12345678901234567890}')
})

test.each([
  ['what is an object already', '{"town": "Paris"}'],
  ['what the schema does not accept', `{'town': 'Paris'}`],
  ['a value of another type', '{"city": 7,}'],
  ['words', 'I do not know that city'],
  ['a list', '[{"city": "Paris"},'],
  ['two objects', '{"city": "Paris"}\n{"city": "Rome"}'],
  ['the end of a template', '{"city": "Paris"}</tool_call>'],
])('%s is left alone', (_, text) => {
  expect(repairArguments(text, city)).toBeUndefined()
})

test.each([
  ['too long', `{"city": "${'x'.repeat(100_000)}`],
  ['nested too deep', `${'{"a":'.repeat(13_000)}`],
  ['brackets', '['.repeat(65_000)],
  ['quotes', `{${'"a:'.repeat(20_000)}`],
])('what would take long to repair does not: %s', (_, text) => {
  const start = performance.now()

  expect(repairArguments(text, city)).toBeUndefined()
  expect(performance.now() - start).toBeLessThan(1_000)
})
