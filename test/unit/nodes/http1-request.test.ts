import { describe, expect, test } from 'bun:test'
import { headOf, pack, packet, parseTarget, pieces, type Route } from '../../../src/nodes/http1-request'
import type { UpstreamSend } from '../../../src/nodes/upstream'

const route = (): Route => ({ target: parseTarget('http://rig:8080'), path: '/v1/chat', heads: [] })

const sending = (options: Partial<UpstreamSend> = {}): UpstreamSend => ({
  url: 'http://rig:8080/v1/chat',
  method: 'POST',
  headers: { 'x-a': 'b' },
  body: Buffer.from('{}'),
  connectTimeoutMs: 1_000,
  signal: new AbortController().signal,
  ...options,
})

const packed = (to: Route, request: UpstreamSend): string =>
  packet.toString('utf8', 0, pack(headOf(to, request), request.body))

describe('a request as bytes', () => {
  test('is its line, the headers of the client, those given, and the body', () => {
    expect(packed(route(), sending())).toBe(
      'POST /v1/chat HTTP/1.1\r\nhost: rig:8080\r\naccept-encoding: identity\r\ncontent-length: 2\r\nx-a: b\r\n\r\n{}',
    )
  })

  test('tells no length where it has no body and its method promises none', () => {
    expect(packed(route(), sending({ method: 'GET', body: new Uint8Array() }))).toBe(
      'GET /v1/chat HTTP/1.1\r\nhost: rig:8080\r\naccept-encoding: identity\r\nx-a: b\r\n\r\n',
    )
  })

  test('has header values in UTF-8', () => {
    expect(packed(route(), sending({ headers: { 'x-a': 'é€' } }))).toEndWith('\r\nx-a: é€\r\n\r\n{}')
  })

  test('that is too large for one write has the same bytes in pieces', () => {
    const request = sending({ body: Buffer.alloc(70_000, 'x') })
    const head = headOf(route(), request)

    expect(pack(head, request.body)).toBe(0)
    expect(Buffer.concat(pieces(head, request.body)).toString()).toEndWith(
      `content-length: 70000\r\nx-a: b\r\n\r\n${'x'.repeat(70_000)}`,
    )
  })
})

describe('requests to one URL', () => {
  test('with the same headers share their head, whatever their bodies', () => {
    const to = route()
    const one = sending()

    expect(headOf(to, { ...one, body: Buffer.from('another') })).toBe(headOf(to, one))
    expect(packed(to, { ...one, body: Buffer.from('another') })).toEndWith('content-length: 7\r\nx-a: b\r\n\r\nanother')
  })

  test('with other headers, another method or without a length have heads of their own', () => {
    const to = route()
    const one = sending()
    packed(to, one)

    expect(packed(to, { ...one, headers: { 'x-a': 'c' } })).toContain('x-a: c')
    expect(packed(to, { ...one, method: 'DELETE' })).toStartWith('DELETE ')
    expect(packed(to, { ...one, method: 'DELETE', body: new Uint8Array() })).not.toContain('content-length')
  })

  test('with ever new headers are not all remembered', () => {
    const to = route()

    for (let i = 0; i < 1_000; i += 1) headOf(to, sending())

    expect(to.heads.length).toBeLessThan(20)
  })
})
