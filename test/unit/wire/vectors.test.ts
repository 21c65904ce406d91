import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { fromBase64, readVector, toBase64 } from '../../../src/wire/vectors'

test('BL-E01 32-bit floats survive base64 both ways, exactly', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true }), { minLength: 1, maxLength: 40 }), (vector) => {
      expect(fromBase64(toBase64(vector))).toEqual(vector)
    }),
  )
})

test('BL-E01 the bytes are little-endian', () => {
  expect(Buffer.from(toBase64([1]), 'base64')).toEqual(Buffer.from([0, 0, 0x80, 0x3f]))
})

test.each([[[]], [''], ['AAA='], ['not base64!'], [[1, null]], [undefined], [{}]])(
  'BL-E05 %j is no vector',
  (value: unknown) => {
    expect(readVector(value)).toBeUndefined()
  },
)
