import { describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../src/wire/exchange'
import { stopAfterEach } from '../../support/ending'
import { chunk, chunkedHead, LAST_CHUNK, type RawConnection, rawServers, until } from '../../support/raw-server'
import { fakeExchange, forward, gatewayWith, node } from './relay-harness'

const stopLater = stopAfterEach()
const serve = rawServers(stopLater)

const MB = 1024 * 1024

/** Sends a token and then as much as the client takes, without keeping any of it in memory. */
const startFirehose = (total: number): { url: string; sent(): number } => {
  const block = Buffer.alloc(MB, 'x')
  let sent = 0
  const pump = (socket: { write(data: Uint8Array): number }): void => {
    while (sent < total) {
      const written = socket.write(block)
      if (written <= 0) return
      sent += written
    }
  }
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n')
        pump(socket)
      },
      drain: pump,
    },
  })
  stopLater(() => listener.stop(true))
  return { url: `http://127.0.0.1:${listener.port}`, sent: () => sent }
}

describe('under load', () => {
  test('BL-B03: 200 MB for a client that reads nothing cost less than 40 MB and stop the node', async () => {
    const source = startFirehose(200 * MB)
    const before = process.memoryUsage.rss()
    const run = forward(source.url)
    const reply = await run.started()
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(reply.body) })
    stopLater(() => void server.stop(true))
    const client = await Bun.connect({
      hostname: '127.0.0.1',
      port: server.port ?? 0,
      socket: { data() {}, open: (socket) => void socket.pause() },
    })
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')

    let sentBefore = -1
    while (source.sent() !== sentBefore) {
      sentBefore = source.sent()
      await Bun.sleep(150)
    }

    expect(sentBefore).toBeLessThan(60 * MB)
    expect(process.memoryUsage.rss() - before).toBeLessThan(40 * MB)
    expect(run.flow.clientStalledSince).toBeGreaterThan(0)
    client.terminate()
    await until(() => run.heard.events.includes('left'), 'the relay heard that the client left')
  })

  test('BL-W02: 700 streams run at once, each to its own end', async () => {
    const waiting: RawConnection[] = []
    const upstream = serve((connection) => {
      connection.send(chunkedHead() + chunk('data: 1\n\n'))
      waiting.push(connection)
    })
    const exchanges = new Map<string, Exchange>()
    const gateway = gatewayWith(exchanges, {}, { limits: { connectTimeoutMs: 5_000 } })
    const ends: string[] = []
    let started = 0

    for (let i = 0; i < 700; i += 1) {
      exchanges.set(`req_${i}`, fakeExchange(true))
      const call = { request: `req_${i}`, attempt: 1, node: node(upstream.url), model: 'm' }
      gateway.forward(
        call,
        {
          started(reply) {
            started += 1
            void new Response(reply.body as ReadableStream).text()
          },
          finished: (summary) => void ends.push(summary.end),
          failed: (failure) => void ends.push(failure.message),
          refused: (refusal) => void ends.push(refusal.message),
          left: () => void ends.push('left'),
        },
        new AbortController().signal,
      )
      if (i % 100 === 99) await until(() => started === i + 1, `${i + 1} streams have begun`, 5_000)
    }
    expect(upstream.open()).toBe(700)
    for (const connection of waiting) connection.send(chunk('data: [DONE]\n\n') + LAST_CHUNK)

    await until(() => ends.length === 700, 'all have ended', 5_000)
    expect(new Set(ends)).toEqual(new Set(['completed']))
  })
})
