import { expect, test } from 'bun:test'
import { withoutQuotes } from '../../../src/nodes/quoted'

const SECRET = 'the vault code is 7391'
const names = ['qwen/qwen3-coder-30b']
const bodyOf = (content: string, more: object = {}): Uint8Array =>
  Buffer.from(JSON.stringify({ model: names[0], messages: [{ role: 'user', content }], ...more }))

const kept = (message: string, content = SECRET, more: object = {}) =>
  withoutQuotes(message, bodyOf(content, more), names)

test.each([
  ['as JSON', `Missing 'role' in message: {"content":"${SECRET}"}`],
  ['as a dictionary of Python', `1 validation error: {'type': 'missing', 'input': {'content': '${SECRET}'}}`],
  ['alone', SECRET],
  ['in part, as where an error text is cut', `cannot parse: ${SECRET.slice(0, 15)}`],
])('a prompt that an engine quotes %s is not kept', (_, message) => {
  expect(kept(message)).not.toContain(SECRET.slice(0, 12))
})

test('what the engine says itself stays, with the names that it is about', () => {
  const own = "'response_format' is not supported by qwen/qwen3-coder-30b, which has a window of 4096 tokens"

  expect(kept(own, SECRET, { response_format: { type: 'json' } })).toBe(own)
  expect(kept(`${own}: ${SECRET} (400)`, SECRET, { response_format: {} })).toBe(`${own}: … (400)`)
})

test('every position of a quotation is found', () => {
  for (let shift = 0; shift < 30; shift++) {
    expect(kept(`${'#'.repeat(shift)}${SECRET}${'#'.repeat(7)}`)).toBe(`${'#'.repeat(shift)}…${'#'.repeat(7)}`)
  }
})

test('words that stand in the prompt many times hide no quotation', () => {
  expect(kept('the code of the vault code is 7391!', `the the the the ${SECRET}`)).not.toContain('7391')
})

test('about a request too long to be searched nothing is kept', () => {
  expect(withoutQuotes('no', bodyOf('a'.repeat(1024 * 1024)), names)).toBeUndefined()
})
