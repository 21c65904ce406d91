import { expect, test } from 'bun:test'
import net from 'node:net'
import { createRequestParser } from '../../../src/sim/fake/http-parser'
import { until, withFakes } from '../../support/fakes'

/** Method, target and body of each request; stops at what is not HTTP. */
const parseAll = (bytes: Buffer, step: number): unknown[] => {
  const parser = createRequestParser()
  const seen: unknown[] = []
  for (let at = 0; at < bytes.length; at += step) {
    parser.push(bytes.subarray(at, at + step))
    for (let next = parser.next(); next !== undefined; next = parser.next()) {
      if (next === 'bad') return [...seen, 'bad']
      seen.push([next.method, next.target, Buffer.from(next.body).toString()])
    }
  }
  return seen
}

test.each([1, 2, 7, 1000])('requests come out whole however they are split (%p bytes)', (step) => {
  const bytes = Buffer.from(
    'GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n' +
      'POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello' +
      'POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n' +
      'GET /d HTTP/1.1\r\n\r\n',
  )

  expect(parseAll(bytes, step)).toEqual([
    ['GET', '/a?x=1', ''],
    ['POST', '/b', 'hello'],
    ['POST', '/c', 'abc0123456789'],
    ['GET', '/d', ''],
  ])
})

test('what is not HTTP is bad', () => {
  expect(parseAll(Buffer.from('nonsense\r\n\r\n'), 100)[0]).toBe('bad')
  expect(parseAll(Buffer.from(`GET / HTTP/1.1\r\nx: ${'a'.repeat(70_000)}`), 10_000)[0]).toBe('bad')
})

test('pipelined requests are answered in order on one connection, and 100-continue is granted', () =>
  withFakes([{ kind: 'openai' }], async (fake) => {
    const socket = net.connect(fake!.port, '127.0.0.1')
    let text = ''
    socket.on('data', (bytes) => (text += bytes))
    socket.write('GET /nothing HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n')
    await until(() => text.includes('"object":"list"'))
    expect(text.indexOf('404')).toBeLessThan(text.indexOf('"object":"list"'))

    text = ''
    socket.write('POST /v1/embeddings HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 25\r\n\r\n')
    await until(() => text === 'HTTP/1.1 100 Continue\r\n\r\n')
    socket.write('{"model":"m","input":"a"}')
    await until(() => text.includes('"embedding"'))
    expect(fake!.sockets.opened).toBe(1)
    socket.destroy()
  }))
