import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { connect } from 'node:net'
import { hashKey } from '../../src/config/hash-key'
import { bytes, host, type Setup } from './harness'

const stops: (() => unknown)[] = []

afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

const listening = async (setup: Setup = {}) => {
  const serve = spyOn(Bun, 'serve')
  const served = host(setup)
  const { port } = await served.server.listen()
  const timeout = spyOn(serve.mock.results[0]?.value as Bun.Server<undefined>, 'timeout')
  serve.mockRestore()
  stops.push(() => served.server.stop(true))
  return { ...served, port, silences: () => timeout.mock.calls.map(([, seconds]) => seconds) }
}

/** Sends the text as it stands; what came back once `end` is in it. */
const exchange = (port: number, text: string, end = '\r\n\r\n') =>
  new Promise<string>((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    stops.push(() => socket.destroy())
    socket.on('data', (data) => {
      received += data.toString()
      if (received.includes(end)) resolve(received)
    })
    socket.on('close', () => resolve(received))
    socket.on('error', reject)
  })

describe('DNS rebinding: without keys, a page whose own name points at this machine', () => {
  const rebound = { host: 'evil.example:11435' }

  test.each(['/v1/models', '/api/tags', '/api/v1/requests', '/api/v1/nodes', '/api/v1/overview', '/metrics'])(
    'reads nothing of %s',
    async (path) => {
      const response = await host().get(path, rebound)

      expect(response.status).toBe(403)
      expect(await response.text()).toContain('host name')
    },
  )

  test.each([{}, { origin: 'http://evil.example:11435' }])('runs no model, with the origin of %p', async (origin) => {
    const { chat, jobs } = host()

    expect((await chat({ ...rebound, ...origin })).status).toBe(403)
    expect(jobs).toEqual([])
  })

  test.each([
    'localhost',
    'LOCALHOST:11435',
    '127.0.0.1:11435',
    '[::1]:11435',
    '10.0.0.7',
    'llm',
    'host.docker.internal:11435',
    'router.lan',
    'mac.local',
    'fleet.localhost',
  ])('has none of the names that the public DNS does not hand out: %s', async (name) => {
    expect((await host().chat({ host: name })).status).toBe(200)
  })

  test.each(['localhost.evil.example', '127.0.0.1.evil.example', 'local.example', 'evil.localdomain.example'])(
    'does not pass as %s',
    async (name) => {
      expect((await host().chat({ host: name })).status).toBe(403)
    },
  )

  test('sees that the router lives; with keys it is the key that counts', async () => {
    expect((await host().get('/healthz', rebound)).status).toBe(200)

    const key = { name: 'k', sha256: hashKey('fleet_k'), scopes: ['inference' as const] }
    const keyed = host({ auth: { mode: 'keys', keys: [key] } })
    expect((await keyed.chat({ ...rebound, authorization: 'Bearer fleet_k' })).status).toBe(200)
  })
})

describe('a Host that is none', () => {
  test.each(['a@b', 'a/b', 'a?b', 'a#b', 'localhost:80/healthz?', ''])(
    'is refused, and no route answers under another path: %p',
    async (name) => {
      const { port } = await listening()

      const longer = await exchange(port, `GET /elsewhere/healthz HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      const shorter = await exchange(port, `GET /api/v1/overview HTTP/1.1\r\nHost: ${name}\r\n\r\n`)

      expect(longer).toStartWith('HTTP/1.1 400')
      expect(shorter).toStartWith('HTTP/1.1 400')
    },
  )

  test('does not keep a simple health check from its answer', async () => {
    const { port } = await listening()

    expect(await exchange(port, 'GET /healthz HTTP/1.0\r\n\r\n')).toContain('200 OK')
  })
})

describe('a connection may be silent only while an answer is being made', () => {
  const request = '{"model":"qwen"}'
  const head = (length: number, more = '') =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n${more}Content-Length: ${length}\r\n\r\n`

  test('not during an upload, and not after the answer', async () => {
    const { port, silences, jobs } = await listening()
    const socket = connect(port, '127.0.0.1', () => socket.write(head(request.length) + request.slice(0, 5)))
    stops.push(() => socket.destroy())
    await Bun.sleep(50)

    expect(silences()).toEqual([])

    socket.write(request.slice(5))
    await new Promise((resolve) => socket.once('data', resolve))

    expect(jobs).toHaveLength(1)
    expect(silences()).toEqual([0, 255])
  })

  test('not for a caller without a key', async () => {
    const key = { name: 'k', sha256: hashKey('fleet_k'), scopes: ['inference' as const] }
    const { port, silences } = await listening({ auth: { mode: 'keys', keys: [key] } })

    expect(await exchange(port, head(60_000_000))).toStartWith('HTTP/1.1 401')
    expect(silences()).not.toContain(0)
  })

  test('not after a stream has ended, however long it was', async () => {
    let ended = (): void => {}
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes('data: 1')) })
    const onOver = (tell: () => void): void => {
      ended = tell
    }
    const { port, silences } = await listening({
      submit: async () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body, onOver }),
    })

    await exchange(port, head(request.length) + request, 'data: 1')
    expect(silences()).toEqual([0])

    ended()
    expect(silences()).toEqual([0, 255])
  })

  test('not after a refusal', async () => {
    const { port, silences } = await listening({ submit: () => Promise.reject(new Error('broken')) })

    expect(await exchange(port, head(request.length) + request)).toStartWith('HTTP/1.1 500')
    expect(silences().at(-1)).toBe(255)
  })
})
