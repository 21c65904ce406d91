import { afterEach, describe, expect, test } from 'bun:test'
import { createServer, type Server, type Socket } from 'node:net'
import { Type } from '@sinclair/typebox'
import { createNodeHttp } from '../../../src/nodes/fetch-http'
import { NodeFault } from '../../../src/ports/node-gateway'
import { nodeAt, replay } from '../../fixtures/nodes/recorded'

const http = createNodeHttp({ timeoutMs: 2_000, instance: 'this-instance', now: Date.now })
const signal = new AbortController().signal
const Any = Type.Object({})

const open: Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

/** A TCP server that answers the first bytes of a connection with whatever `speak` does. */
const tcp = async (speak: (socket: Socket) => void): Promise<string> => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => speak(socket))
  })
  open.push(server)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return typeof address === 'object' && address ? `127.0.0.1:${address.port}` : ''
}

const faultOf = async (work: Promise<unknown>): Promise<NodeFault> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(NodeFault)
  return error as NodeFault
}

describe('every failure has a class, a readable text and the time it took (BL-L02)', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n'
  const cases: readonly [what: string, kind: string, speak: (socket: Socket) => void][] = [
    ['a reset', 'reset', (socket) => socket.resetAndDestroy()],
    ['a close before the answer', 'reset', (socket) => socket.end()],
    ['a close in the middle', 'reset', (socket) => socket.end(`${head}abc`)],
    ['HTTP/1.0 garbage', 'protocol', (socket) => socket.end('HTTP/1.0 garbage\r\n\r\n')],
    ['another protocol', 'protocol', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
    ['oversized headers', 'protocol', (socket) => socket.end(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(70_000)}\r\n\r\n`)],
    [
      'broken gzip',
      'bad_content',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde'),
    ],
  ]
  for (const [what, kind, speak] of cases) {
    test(`${what} is ${kind}`, async () => {
      const host = await tcp(speak)

      const { failure } = await faultOf(http.json(Any, `http://${host}/api/tags`, { signal }))

      expect(failure.class).toBe(kind as never)
      expect(failure.message).toContain(host)
      expect(failure.message).not.toContain('verbose')
      expect(failure.elapsedMs).toBeGreaterThanOrEqual(0)
    })
  }

  test('a refused connection is connect', async () => {
    const { url, stop } = replay({ routes: {} })
    stop()
    const { failure } = await faultOf(http.raw(url, { signal }))
    expect(failure).toMatchObject({ class: 'connect', bytes: 0 })
    expect(failure.message).toContain('nothing listens there')
  })

  test('an unknown host is dns', async () => {
    const { failure } = await faultOf(http.raw('http://no-such-host.invalid/', { signal }))
    expect(failure.class).toBe('dns')
    expect(failure.message).toContain('no-such-host.invalid')
  })

  test('https to a server that speaks http is tls', async () => {
    const host = await tcp((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const { failure } = await faultOf(http.raw(`https://${host}/`, { signal }))
    expect(failure.class).toBe('tls')
  })

  test('silence is first_byte_timeout, silence after the head is idle_timeout', async () => {
    const silent = await tcp(() => {})
    const halting = await tcp((socket) => void socket.write(`${head}abc`))

    const before = await faultOf(http.raw(`http://${silent}/`, { signal, timeoutMs: 30 }))
    const after = await faultOf(http.raw(`http://${halting}/`, { signal, timeoutMs: 60 }))

    expect(before.failure.class).toBe('first_byte_timeout')
    expect(after.failure).toMatchObject({ class: 'idle_timeout', bytes: 3 })
  })

  test('the signal of the caller ends a call that has no deadline', async () => {
    const silent = await tcp(() => {})
    const fault = await faultOf(
      http.raw(`http://${silent}/`, { signal: AbortSignal.timeout(30), timeoutMs: Number.POSITIVE_INFINITY }),
    )
    expect(fault.failure.class).toBe('first_byte_timeout')
    expect(fault.message).toContain('given up')
  })

  test("an engine's own words are kept, short and on one line; a web page is not", async () => {
    const words = `CUDA\nerror ${'x'.repeat(500)}`
    const page = { status: 502, headers: { 'content-type': 'text/html' }, text: '<html>Bad Gateway</html>' }
    const server = replay({
      routes: { 'GET /a': { status: 500, body: { error: { message: words } } }, 'GET /b': page },
    })

    const told = await faultOf(http.json(Any, `${server.url}/a`, { signal }))
    const shown = await faultOf(http.json(Any, `${server.url}/b`, { signal }))
    server.stop()

    expect(told.failure).toMatchObject({ class: 'status', status: 500 })
    expect(told.message).toContain('answered 500: CUDA error xxx')
    expect(told.message.length).toBeLessThan(300)
    expect(shown.message).toEndWith('/b answered 502')
  })

  test('a redirect is not followed, and its target is named without its query', async () => {
    const location = { location: 'https://sso.example/login?token=secret' }
    const server = replay({ routes: { 'GET /': { status: 302, headers: location, text: '' } } })
    const fault = await faultOf(http.json(Any, `${server.url}/`, { signal }))
    server.stop()
    expect(fault.message).toContain('https://sso.example/login')
    expect(fault.message).not.toContain('secret')
  })

  test('more than 4 MB is bad_content', async () => {
    const server = replay({ routes: { 'GET /': { status: 200, text: 'x'.repeat(4 * 1024 * 1024 + 1) } } })
    const fault = await faultOf(http.raw(`${server.url}/`, { signal }))
    server.stop()
    expect(fault.failure.class).toBe('bad_content')
  })
})

describe('what is sent', () => {
  test('our instance, the key of the node, and nothing of an environment proxy', async () => {
    const server = replay({ routes: { 'GET /': { status: 200, body: {} } } })
    const before = process.env.http_proxy
    process.env.http_proxy = 'http://127.0.0.1:1'

    await http.json(Any, `${server.url}/`, { signal, node: nodeAt(server.url, 'openai', { key: 'node-key' }) })
    await http.json(Any, `${server.url}/`, { signal })

    if (before === undefined) delete process.env.http_proxy
    else process.env.http_proxy = before
    server.stop()
    expect(server.headers[0]?.get('x-fleet-via')).toBe('this-instance')
    expect(server.headers[0]?.get('authorization')).toBe('Bearer node-key')
    expect(server.headers[1]?.get('authorization')).toBeNull()
  })

  test('a node that is this router itself is refused', async () => {
    const server = replay({
      headers: { 'x-fleet-instance': 'this-instance' },
      routes: { 'GET /': { status: 200, body: {} } },
    })
    const fault = await faultOf(http.json(Any, `${server.url}/`, { signal }))
    server.stop()
    expect(fault.message).toContain('this router itself')
  })
})
