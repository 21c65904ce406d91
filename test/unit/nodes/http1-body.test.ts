import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { createBodyDecoder } from '../../../src/nodes/http1-body'
import { FramingError } from '../../../src/nodes/http1-head'

/** Feeds the bytes in pieces cut at the given positions; the decoder may change what it is given. */
const decode = (wire: string, cuts: readonly number[]) => {
  const decoder = createBodyDecoder({ kind: 'chunked' })
  const edges = [0, ...cuts, wire.length]
  const pieces: string[] = []
  for (let i = 1; i < edges.length; i += 1) {
    const piece = decoder.push(Buffer.from(wire.slice(edges[i - 1], edges[i]), 'latin1'))
    if (piece) pieces.push(piece.toString('latin1'))
  }
  return { text: pieces.join(''), pieces, decoder }
}

const WIRE = '5\r\nhello\r\n1;name="v"\r\n \r\n00A \r\n0123456789\r\n0;x\r\nTrailer: 1\r\nOther: 2\r\n\r\n'

describe('chunked body', () => {
  test('gives one piece per socket event, however many chunks it holds', () => {
    expect(decode(WIRE, []).pieces).toEqual(['hello 0123456789'])
  })

  test('is the same body wherever the bytes are split', () => {
    for (let first = 0; first <= WIRE.length; first += 1) {
      for (let second = first; second <= WIRE.length; second += 1) {
        const { text, decoder } = decode(WIRE, [first, second])
        expect(text).toBe('hello 0123456789')
        expect(decoder.done).toBe(true)
        expect(decoder.overrun).toBe(false)
      }
    }
  })

  test('gives back what any chunks held, split anywhere', () => {
    const chunks = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), { maxLength: 12 })
    fc.assert(
      fc.property(chunks, fc.array(fc.nat(600), { maxLength: 8 }), (parts, cuts) => {
        const wire = `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
        const inside = cuts.filter((cut) => cut < wire.length).sort((a, b) => a - b)
        const { text, decoder } = decode(wire, inside)
        expect(text).toBe(parts.join(''))
        expect(decoder.done).toBe(true)
      }),
    )
  })

  test('notices bytes after its end', () => {
    const { decoder } = decode(`${WIRE}HTTP/1.1`, [])

    expect(decoder.done).toBe(true)
    expect(decoder.overrun).toBe(true)
  })

  test('is not done without the last chunk', () => {
    expect(decode(WIRE.slice(0, -2), []).decoder.done).toBe(false)
  })

  test.each([['\r\nx'], ['zz\r\n'], ['-1\r\n'], ['12345678901234\r\n'], ['1\r\nab\r\n']])('refuses %p', (wire) => {
    expect(() => decode(wire, [])).toThrow(FramingError)
  })

  test('does not take extensions or trailers without end', () => {
    expect(() => decode(`1;${'x'.repeat(70_000)}`, [])).toThrow(FramingError)
    expect(() => decode(`0\r\n${'x'.repeat(70_000)}`, [])).toThrow(FramingError)
  })
})

describe('body with a length', () => {
  test('ends at its length and notices more', () => {
    const decoder = createBodyDecoder({ kind: 'length', length: 5 })

    expect(decoder.push(Buffer.from('abc'))?.toString()).toBe('abc')
    expect(decoder.done).toBe(false)
    expect(decoder.push(Buffer.from('defg'))?.toString()).toBe('de')
    expect(decoder.done).toBe(true)
    expect(decoder.overrun).toBe(true)
  })

  test('without length only the connection ends it', () => {
    const decoder = createBodyDecoder({ kind: 'until_close' })

    expect(decoder.push(Buffer.from('abc'))?.toString()).toBe('abc')
    expect(decoder.done).toBe(false)
    expect(decoder.endsWithConnection).toBe(true)
  })
})
