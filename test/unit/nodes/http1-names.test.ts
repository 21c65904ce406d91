import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { headerName } from '../../../src/nodes/http1-names'

const read = (name: string): string => headerName(`${name}: x`, 0, name.length)

describe('the name of a header', () => {
  test.each([
    ['Content-Type', 'content-type'],
    ['content-type', 'content-type'],
    ['X-Request-ID2', 'x-request-id2'],
    ['Server ', 'server'],
    ['X_Odd', 'x_odd'],
    ['X@', 'x@'],
    ['Ärger', 'ärger'],
    [`X-${'Long'.repeat(20)}`, `x-${'long'.repeat(20)}`],
  ])('%p is %p, the first time and again', (given, name) => {
    expect([read(given), read(given), read(given.toUpperCase())]).toEqual([name, name, name])
  })

  test('is found where it stands in the text', () => {
    expect(headerName('a: 1\r\nDate: 2', 6, 10)).toBe('date')
  })

  test('is never that of another which stands in the same place of the table', () => {
    const names = fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom(...'abXYZ019-_@`[{ é') })
    fc.assert(
      fc.property(fc.array(names, { minLength: 20, maxLength: 80 }), (many) => {
        for (const name of [...many, ...many]) expect(read(name)).toBe(name.trimEnd().toLowerCase())
      }),
    )
  })
})
