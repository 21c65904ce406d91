import { afterEach, expect, spyOn, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { RouterError } from '../../src/domain/errors'
import type { Reply } from '../../src/ports/node-gateway'
import { bytes, host, modelView, type Setup } from './harness'

const stops: (() => unknown)[] = []

afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

const listening = async (setup: Setup = {}) => {
  const served = host(setup)
  const { port, url } = await served.server.listen()
  stops.push(() => served.server.stop(true))
  return { ...served, port, url }
}

/** A bare connection: what was received so far, and a wait for a text in it. */
const dial = async (port: number) => {
  let received = ''
  const socket: Socket = connect(port, '127.0.0.1')
  stops.push(() => socket.destroy())
  let check = (): void => {}
  socket.on('data', (data) => {
    received += data.toString()
    check()
  })
  socket.on('close', () => {
    received += '<closed>'
    check()
  })
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  const until = (text: string): Promise<string> =>
    new Promise((resolve) => {
      check = () => received.includes(text) && resolve(received)
      check()
    })
  return { socket, until }
}

const head = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`

const get = (path: string, hostHeader = 'localhost'): string => head([`GET ${path} HTTP/1.1`, `Host: ${hostHeader}`])

test('BL-B01: after a 413 for a declared length the connection serves the next request', async () => {
  const { port, jobs } = await listening({ maxBodyBytes: 1_000_000 })
  const { socket, until } = await dial(port)

  socket.write(head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', 'Content-Length: 1000001']))
  const refused = await until('request_too_large')
  socket.write(new Uint8Array(1_000_001).fill(0x61))
  socket.write(get('/healthz'))
  const both = await until('alive')

  expect(refused).toStartWith('HTTP/1.1 413')
  expect(both).not.toContain('<closed>')
  expect(jobs).toEqual([])
})

test('BL-B01: after a 413 for a chunked body the connection serves the next request', async () => {
  const { port } = await listening({ maxBodyBytes: 1_000_000 })
  const { socket, until } = await dial(port)
  const piece = 'a'.repeat(600_000)

  socket.write(head(['POST /api/chat HTTP/1.1', 'Host: localhost', 'Transfer-Encoding: chunked']))
  for (let sent = 0; sent < 3; sent++) socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`)
  const refused = await until('request_too_large')
  socket.write('0\r\n\r\n')
  socket.write(get('/healthz'))
  const both = await until('alive')

  expect(refused).toStartWith('HTTP/1.1 413')
  expect(both).not.toContain('<closed>')
})

test.each([1.1, 4, 20])('BL-B01: a body of %p MB under the limit arrives whole', async (megabytes) => {
  const { url, arrivals } = await listening({ maxBodyBytes: 21_000_000 })
  const body = JSON.stringify({ model: 'qwen', image: 'A'.repeat(megabytes * 1_000_000) })

  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })

  expect(response.status).toBe(200)
  expect(arrivals[0]?.body.byteLength).toBe(body.length)
})

test('BL-B01: an upload that ends before its declared length is never submitted nor logged', async () => {
  const { port, url, jobs, warnings } = await listening()
  const { socket } = await dial(port)

  socket.write(`${head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', 'Content-Length: 100'])}{"model":`)
  await Bun.sleep(20)
  socket.destroy()
  await Bun.sleep(20)

  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(jobs).toEqual([])
  expect(warnings).toEqual([])
})

test('BL-D05: a client that leaves before the answer begins aborts the signal', async () => {
  const left = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const { port, exchanges } = await listening({
    submit: (_job, signal) => {
      arrived.resolve()
      return new Promise<Reply>((_, reject) => {
        signal.addEventListener('abort', () => {
          left.resolve()
          reject(new RouterError('client_disconnected', 'left'))
        })
      })
    },
  })
  const { socket } = await dial(port)
  const body = '{"model":"qwen"}'

  socket.write(head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', `Content-Length: ${body.length}`]) + body)
  await arrived.promise
  socket.destroy()
  await left.promise
  await Bun.sleep(1)

  expect(exchanges.size).toBe(0)
})

test('BL-D02: a client that leaves while it reads a silent stream cancels the body', async () => {
  const cancelled = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(bytes('data: 1\n\n')),
    cancel: () => cancelled.resolve(),
  })
  const { port } = await listening({
    submit: async () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body }),
  })
  const { socket, until } = await dial(port)
  const request = '{"model":"qwen","stream":true}'

  socket.write(
    head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', `Content-Length: ${request.length}`]) + request,
  )
  await until('data: 1')
  socket.destroy()

  await cancelled.promise
})

test('BL-S01: an inference request may be silent for as long as it takes, others may not', async () => {
  const serve = spyOn(Bun, 'serve')
  const { url } = await listening()
  const timeout = spyOn(serve.mock.results[0]?.value as Bun.Server<undefined>, 'timeout')
  serve.mockRestore()

  await fetch(`${url}/healthz`)
  expect(timeout).not.toHaveBeenCalled()

  await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: '{"model":"qwen"}' })
  expect(timeout.mock.calls.map(([, seconds]) => seconds)).toEqual([0, 255])
})

test('HEAD answers with the headers of GET and no body', async () => {
  const { port } = await listening()
  const { socket, until } = await dial(port)

  socket.write(head(['HEAD / HTTP/1.1', 'Host: localhost']))
  await until('\r\n\r\n')
  socket.write(head(['HEAD /api/version HTTP/1.1', 'Host: x']))
  socket.write(get('/'))
  const received = await until('Ollama is running')

  expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
  expect(received.match(/Ollama is running/g)).toHaveLength(1)
  expect(received).not.toContain('0.33.0')
})

test('BL-N02: ids with slashes, colons and spaces work on the wire, under a short host name too', async () => {
  const { port } = await listening({ fleet: { models: () => [modelView('org/名前 x:7b')] } })
  const { socket, until } = await dial(port)

  socket.write(get(`/v1/models/${encodeURIComponent('org/名前 x:7b')}`, 'llm'))
  await until('"object":"model"')
  socket.write(get('/v1/models/org/%E5%90%8D%E5%89%8D%20x:7b', 'llm'))
  socket.write(get('/healthz', 'llm'))
  const received = await until('alive')

  expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
})

const oneRequest = '0\r\n\r\nGET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\n\r\n'

test.each([
  ['a length beside chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
  ['two lengths', ['Content-Length: 5', 'Content-Length: 6']],
  ['an unknown transfer coding', ['Transfer-Encoding: xchunked']],
  ['a space before the colon', ['Transfer-Encoding : chunked']],
  ['a negative length', ['Content-Length: -1']],
])('BL-A01: a request with %s is refused, and what hides behind it is not served', async (_, headers) => {
  const { port, jobs } = await listening()
  const { socket, until } = await dial(port)

  socket.write(head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', ...headers]) + oneRequest)
  const received = await until('<closed>')

  expect(received).toStartWith('HTTP/1.1 400')
  expect(received).not.toContain('inst-1')
  expect(jobs).toEqual([])
})

test('BL-A01: a line break in a client header does not become a header of ours', async () => {
  const { port } = await listening()
  const { socket, until } = await dial(port)

  socket.write(head(['GET /healthz HTTP/1.1', 'Host: localhost', 'X-Request-Id: a\rX-Evil: 1']))
  const received = await until('\r\n\r\n')

  expect(received.toLowerCase()).not.toContain('x-evil')
})

test('without keys, metrics are for this machine', async () => {
  const { url } = await listening({ metrics: { expose: async () => 'fleet_up 1\n', contentType: 'text/plain' } })

  expect((await fetch(`${url}/metrics`)).status).toBe(200)
})

test('BL-Z01: a forced stop cuts what a graceful one still lets run', async () => {
  const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes('data: 1\n\n')) })
  const { server, port } = await listening({ submit: async () => ({ status: 200, headers: {}, body }) })
  const { socket, until } = await dial(port)
  const request = '{"model":"qwen","stream":true}'

  socket.write(
    head(['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', `Content-Length: ${request.length}`]) + request,
  )
  await until('data: 1')
  const graceful = server.stop(false)
  const refused = fetch(`http://127.0.0.1:${port}/healthz`)
  expect(refused).rejects.toThrow()
  await server.stop(true)

  await until('<closed>')
  await graceful
})

test('a port that is taken is an error that says so', async () => {
  const { port } = await listening()

  const second = host({ port }).server.listen()

  expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' })
})
