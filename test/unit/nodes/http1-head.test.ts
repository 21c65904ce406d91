import { describe, expect, test } from 'bun:test'
import { FramingError, headEnd, looksLikeHead, parseHead } from '../../../src/nodes/http1-head'

const parse = (...lines: string[]) => parseHead(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))

describe('response head', () => {
  test('joins repeated headers, lower-cases names and trims values', () => {
    const head = parse('HTTP/1.1 200 OK', 'X-Thing:  a ', 'x-thing: b', 'Content-Type: text/plain')

    expect(head.headers['x-thing']).toBe('a, b')
    expect(head.headers['content-type']).toBe('text/plain')
  })

  test('accepts bare line feeds and an empty reason phrase', () => {
    const bytes = Buffer.from('HTTP/1.1 404\nContent-Length: 3\n\nabc')

    expect(bytes.subarray(headEnd(bytes, 0)).toString()).toBe('abc')
    expect(parseHead(bytes.subarray(0, headEnd(bytes, 0)))).toMatchObject({ status: 404, framing: { length: 3 } })
  })

  test.each([
    ['HTTP/1.1 200 OK', [], 'until_close'],
    ['HTTP/1.1 204 No Content', ['content-length: 5'], 'none'],
    ['HTTP/1.1 304 Not Modified', [], 'none'],
    ['HTTP/1.1 200 OK', ['content-length: 5'], 'length'],
    ['HTTP/1.1 200 OK', ['content-length: 5, 5'], 'length'],
    ['HTTP/1.1 200 OK', ['transfer-encoding: Chunked'], 'chunked'],
    ['HTTP/1.1 200 OK', ['transfer-encoding: chunked', 'content-length: 5'], 'chunked'],
    ['HTTP/1.1 200 OK', ['transfer-encoding: identity', 'content-length: 5'], 'length'],
  ] as const)('%s %p has a body of kind %s', (status, headers, kind) => {
    expect(parse(status, ...headers).framing.kind).toBe(kind)
  })

  test.each([
    ['HTTP/1.1', [], true],
    ['HTTP/1.1', ['Connection: Close'], false],
    ['HTTP/1.0', [], false],
    ['HTTP/1.0', ['connection: keep-alive'], true],
    ['HTTP/1.1', ['transfer-encoding: chunked', 'content-length: 1'], false],
  ] as const)('%s with %p keeps the connection: %p', (version, headers, keeps) => {
    expect(parse(`${version} 200 OK`, ...headers).keepAlive).toBe(keeps)
  })

  test('reads for how long the node keeps the connection', () => {
    expect(parse('HTTP/1.1 200 OK', 'keep-alive: timeout=5, max=100').keepAliveMs).toBe(5_000)
  })

  test.each([
    ['HTTP/2 200 OK', []],
    ['HTTP/1.1 20 OK', []],
    ['HTTP/1.1 200 OK', ['no colon here']],
    ['HTTP/1.1 200 OK', [': nameless']],
    ['HTTP/1.1 200 OK', ['a: b', ' folded']],
    ['HTTP/1.1 200 OK', ['content-length: -1']],
    ['HTTP/1.1 200 OK', ['content-length: 5, 6']],
    ['HTTP/1.1 200 OK', ['content-length: 0x10']],
    ['HTTP/1.1 200 OK', ['transfer-encoding: gzip, chunked']],
  ])('refuses %s %p', (status, headers) => {
    expect(() => parse(status, ...headers)).toThrow(FramingError)
  })

  test('a header named like an object member is only a header', () => {
    const head = parse('HTTP/1.1 200 OK', '__proto__: x', 'constructor: y')

    expect(head.headers.constructor).toBe('y' as never)
    expect(Object.keys(head.headers)).toEqual(['__proto__', 'constructor'])
  })

  test('first bytes that cannot become a status line are known as such', () => {
    expect(looksLikeHead(Buffer.from('H'))).toBe(true)
    expect(looksLikeHead(Buffer.from('HTTP/1.1 200'))).toBe(true)
    expect(looksLikeHead(Buffer.from('SSH-2.0'))).toBe(false)
  })
})
