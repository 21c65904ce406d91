import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { seededRandom } from '../../src/sim/seeded-random'
import { fastModel, type Json, readJson, slowModel, until } from '../support/fakes'
import type { Bench } from '../support/router'
import { quietly, rawClient } from './clients'

const MB = 1_000_000

const chat = (size: number, more: object = {}): string =>
  JSON.stringify({ model: 'm', stream: false, messages: [{ role: 'user', content: 'x'.repeat(size) }], ...more })

const send = (
  bench: Bench,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  {
    path = '/v1/chat/completions',
    headers = {},
    signal,
  }: { path?: string; headers?: object; signal?: AbortSignal } = {},
): Promise<Response> =>
  fetch(`${bench.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    ...(signal ? { signal } : {}),
  })

const head = (lines: readonly string[]): string =>
  `${['POST /v1/chat/completions HTTP/1.1', 'host: localhost', ...lines].join('\r\n')}\r\n\r\n`

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

const held = (bench: Bench): number => bench.router.buffered.bytes

/** Nothing runs, so that every request stays with its body until the node is opened. */
const close = (bench: Bench): void => void bench.router.fleet.setAdmission('a', 'paused')
const open = (bench: Bench): void => void bench.router.fleet.setAdmission('a', 'open')

const large = fastModel('m', { contextTokens: 100_000_000, prefillPerSecond: 1e9 })
const node = { kind: 'llamacpp', resident: ['m'], models: [large], keepLog: false } as const

const bounded = (maxBufferedBytes: number, maxBodyBytes = maxBufferedBytes) => ({
  server: { maxBodyBytes, maxBufferedBytes },
})

/** A request that waits with a body of so many bytes and a little more. */
const occupy = async (bench: Bench, size: number) => {
  const client = new AbortController()
  const before = held(bench)
  const answer = send(bench, chat(size), { signal: client.signal })
  answer.catch(() => {})
  await until(() => held(bench) >= before + size)
  return { answer, leave: () => client.abort() }
}

describe('the bodies of all requests together', () => {
  test('a body that does not fit is refused before it is read, in the shape of the protocol, and counted', () =>
    quietly([node], bounded(3 * MB), async (bench) => {
      close(bench)
      const { answer } = await occupy(bench, 2 * MB)
      const before = held(bench)
      const socket = await rawClient(bench.router.port)

      socket.socket.write(head([`content-length: ${2 * MB}`]))
      await until(() => socket.text().includes('max_buffered_mb'))

      expect(socket.text()).toStartWith('HTTP/1.1 503')
      expect(socket.text().toLowerCase()).toContain('retry-after: 5')
      expect(socket.text()).toContain('limit of 3 MB')
      expect(held(bench)).toBe(before)
      socket.reset()
      const anthropic = await send(bench, chat(2 * MB, { max_tokens: 5 }), { path: '/v1/messages' })
      expect([anthropic.status, ((await anthropic.json()) as Json).error.type]).toEqual([529, 'overloaded_error'])
      const ollama = await send(bench, chat(2 * MB), { path: '/api/chat' })
      expect([ollama.status, ((await ollama.json()) as Json).error]).toEqual([503, expect.stringContaining('3 MB')])

      const metrics = await bench.metrics()
      expect(metrics).toContain(`fleet_buffered_bytes ${before}`)
      expect(
        metrics.match(/fleet_requests_total\{.*dialect="(?:openai|anthropic|ollama)".*"rejected"\} 1/g),
      ).toHaveLength(3)
      expect(bench.of('request.settled').map(({ outcome }) => outcome.code)).toEqual(Array(3).fill('no_capacity'))
      open(bench)
      expect((await answer).status).toBe(200)
      await bench.idle()
      expect(await bench.metrics()).toContain('fleet_buffered_bytes 0')
    }))

  test('a chunked upload is refused where it stops fitting, and its connection serves the next request', () =>
    quietly([node], bounded(3 * MB), async (bench) => {
      close(bench)
      const { leave } = await occupy(bench, 2 * MB)
      const before = held(bench)
      const { socket, text, reset } = await rawClient(bench.router.port)

      socket.write(head(['transfer-encoding: chunked']) + chunk('x'.repeat(500_000)))
      await until(() => held(bench) === before + 500_000)
      socket.write(chunk('x'.repeat(700_000)))
      await until(() => text().includes('max_buffered_mb'))
      expect(text()).toStartWith('HTTP/1.1 503')
      expect(held(bench)).toBe(before)

      socket.write('0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
      await until(() => text().includes('alive'))
      reset()
      leave()
      await bench.idle()
    }))

  test('a compressed body counts with what it unpacks to, and is refused where that stops fitting', () =>
    quietly([node], bounded(3 * MB), async (bench) => {
      const headers = { 'content-encoding': 'gzip' }
      const body = chat(2 * MB)
      close(bench)
      const answer = send(bench, gzipSync(body), { headers })
      await until(() => held(bench) >= body.length)

      const second = await send(bench, gzipSync(body), { headers })

      expect([second.status, (await readJson(second)).fleet.code]).toEqual([503, 'no_capacity'])
      expect(held(bench)).toBe(body.length)
      open(bench)
      expect((await answer).status).toBe(200)
      await bench.idle()
    }))

  test('the largest body that is allowed passes when it is alone, packed or not', () =>
    quietly([node], bounded(2 * MB), async (bench) => {
      const body = chat(2 * MB - chat(0).length)

      expect((await send(bench, body)).status).toBe(200)
      expect((await send(bench, gzipSync(body), { headers: { 'content-encoding': 'gzip' } })).status).toBe(200)
      await bench.idle()
    }))

  test('small bodies are served while large ones fill the limit', () =>
    quietly(
      [
        { ...node, slots: 1 },
        { ...node, models: [fastModel('other')], resident: ['other'] },
      ],
      bounded(2 * MB),
      async (bench) => {
        close(bench)
        const { leave } = await occupy(bench, 2 * MB - 200)

        const [small, medium] = await Promise.all([
          send(bench, chat(10, { model: 'other' })),
          send(bench, chat(70_000, { model: 'other' })),
        ])

        expect([small.status, medium.status]).toEqual([200, 503])
        leave()
        await bench.idle()
      },
    ))
})

describe('a body is released when its request is over', () => {
  const streaming = { stream: true }
  const slow = { ...node, models: [slowModel('m', { contextTokens: 100_000_000, prefillPerSecond: 1e9 })] }

  test('it stays counted while the answer is written, until its end', () =>
    quietly([{ ...slow, answerTokens: 8 }], {}, async (bench) => {
      const body = chat(100_000, streaming)
      const answer = await send(bench, body)

      expect(held(bench)).toBe(body.length)
      await answer.text()
      await until(() => held(bench) === 0)
    }))

  const ends: Readonly<Record<string, (bench: Bench) => Promise<unknown>>> = {
    'answered whole': async (bench) => expect((await send(bench, chat(1_000))).status).toBe(200),
    'answered as a stream': async (bench) => (await send(bench, chat(1_000, streaming))).text(),
    'no JSON': async (bench) => expect((await send(bench, 'x'.repeat(1_000))).status).toBe(400),
    'no gzip': async (bench) =>
      expect((await send(bench, 'x', { headers: { 'content-encoding': 'gzip' } })).status).toBe(400),
    'an unknown coding': async (bench) =>
      expect((await send(bench, 'x', { headers: { 'content-encoding': 'lzw' } })).status).toBe(400),
    'an unknown model': async (bench) => expect((await send(bench, chat(10, { model: 'none' }))).status).toBe(404),
    'a node that fails': async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'reset', times: 9 })
      expect((await send(bench, chat(1_000))).status).toBe(502)
    },
    'a stream that breaks off': async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'cut', afterChunks: 2, times: 1 })
      await (await send(bench, chat(1_000, streaming))).text()
    },
    'a count of tokens': (bench) =>
      send(bench, chat(1_000), { path: '/v1/messages/count_tokens' }).then((reply) => reply.text()),
    'a question about a model': (bench) =>
      send(bench, '{"model":"m"}', { path: '/api/show' }).then((reply) => reply.text()),
    'a job that is refused': async (bench) => {
      const reply = await send(bench, chat(1_000, { model: 'none' }), { path: '/api/v1/jobs' })
      expect([reply.status, (await readJson(reply)).record.outcome.end]).toEqual([404, 'rejected'])
    },
    'a client that leaves in the middle of a declared body': async (bench) => {
      const { socket, reset } = await rawClient(bench.router.port)
      socket.write(`${head(['content-length: 100000'])}{"model":`)
      await until(() => held(bench) === 100_000)
      reset()
    },
    'a client that leaves in the middle of a chunked body': async (bench) => {
      const { socket, reset } = await rawClient(bench.router.port)
      socket.write(head(['transfer-encoding: chunked']) + chunk('{"model":'))
      await until(() => held(bench) === 9)
      reset()
    },
    'a client that leaves while it is held': async (bench) => {
      close(bench)
      const { leave } = await occupy(bench, 1_000)
      leave()
      await until(() => bench.of('request.settled').length > 0)
      open(bench)
    },
    'a client that leaves while it reads': async (bench) => {
      const client = new AbortController()
      const reply = await send(bench, chat(1_000, { stream: true, max_tokens: 1e6 }), { signal: client.signal })
      await reply.body?.getReader().read()
      client.abort()
    },
  }

  test.each(Object.entries(ends))('%s', (_name, end) =>
    quietly([{ ...node, answerTokens: 30 }], {}, async (bench) => {
      await end(bench)

      await bench.idle()
      expect(held(bench)).toBe(0)
    }),
  )

  test('a client of a held stream that leaves between comments', () =>
    quietly([node], { server: { holdHeadersMs: 20 } }, async (bench) => {
      close(bench)
      const client = new AbortController()
      const reply = await send(bench, chat(1_000, streaming), { signal: client.signal })
      expect(reply.status).toBe(200)
      expect(held(bench)).toBeGreaterThan(1_000)

      client.abort()

      await bench.idle()
    }))

  test('whatever many clients do at once, the sum stays under the limit and comes back to zero', () =>
    quietly(
      [{ ...slow, slots: 4, answerTokens: 3 }],
      { ...bounded(4 * MB, 2 * MB), server: { maxBodyBytes: 2 * MB, maxBufferedBytes: 4 * MB, holdHeadersMs: 30 } },
      async (bench) => {
        const random = seededRandom(7)
        let most = 0
        const watch = setInterval(() => {
          most = Math.max(most, held(bench))
        }, 1)
        const one = async (): Promise<number> => {
          const client = new AbortController()
          const stream = random.next() < 0.5
          const text = chat(Math.floor(random.next() ** 3 * 2 * MB), {
            stream,
            model: random.next() < 0.1 ? 'none' : 'm',
          })
          const kind = random.next()
          const leaves = random.next() < 0.4 ? setTimeout(() => client.abort(), random.next() * 200) : undefined
          const isPacked = kind < 0.3
          const pieces = new Blob([text]).stream()
          try {
            const body = isPacked ? gzipSync(text) : kind < 0.6 ? pieces : text
            const headers = isPacked ? { 'content-encoding': 'gzip' } : {}
            const reply = await send(bench, body, { headers, signal: client.signal })
            if (random.next() < 0.8) await reply.text()
            else await reply.body?.cancel()
            return reply.status
          } catch {
            return 499
          } finally {
            clearTimeout(leaves)
          }
        }

        const statuses = await Promise.all(Array.from({ length: 80 }, one))
        clearInterval(watch)

        await bench.idle()
        expect(most).toBeGreaterThan(2 * MB)
        expect(most).toBeLessThanOrEqual(4.5 * MB)
        for (const status of [200, 404, 499, 503]) expect(statuses).toContain(status)
      },
    ))
})
