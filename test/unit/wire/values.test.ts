import { expect, test } from 'bun:test'
import { parseBody } from '../../../src/wire/json/values'

test.each([
  ['', 'The body is empty; a JSON object is expected.'],
  ['[]', 'The body must be a JSON object.'],
  ['{"a":"\u0007"}', 'a control character or an invalid escape'],
  ['secret', 'The body is not valid JSON'],
])('a body that is no object is refused with the reason, and is not quoted: %j', (body, reason) => {
  const parse = (): unknown => parseBody(new TextEncoder().encode(body))

  expect(parse).toThrow(reason)
  expect(parse).not.toThrow('secret')
})
