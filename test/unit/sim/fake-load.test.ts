import { expect, test } from 'bun:test'
import net from 'node:net'
import { numberedWords } from '../../../src/sim/fake/question'
import { chatText, fastModel, slowModel, until, withFakes } from '../../support/fakes'

const request = (prompt: string): string => {
  const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: prompt }] })
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** The body out of chunked transfer coding; every event is one chunk. */
const unchunked = (text: string): string =>
  text.slice(text.indexOf('\r\n\r\n') + 4).replace(/(^|\r\n)[0-9a-f]+\r\n/g, '')

const connect = (port: number): Promise<net.Socket> =>
  new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
  })

const stream = (socket: net.Socket, prompt: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    socket.on('data', (bytes: Buffer) => parts.push(bytes))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(parts).toString()))
    socket.write(request(prompt))
  })

test(
  '700 streams at once lose, double and mix nothing',
  () =>
    withFakes(
      [{ kind: 'openai', slots: 700, models: [slowModel('m', { decodePerSecond: 40 })], answerTokens: 40 }],
      async (fake) => {
        const prompts = Array.from({ length: 700 }, (_, index) => `prompt ${index}`)
        // One after the other: the kernel keeps only so many connections waiting.
        const sockets: net.Socket[] = []
        for (const _ of prompts) sockets.push(await connect(fake!.port))
        const started = performance.now()
        const texts = await Promise.all(sockets.map((socket, index) => stream(socket, prompts[index]!)))
        const tookMs = performance.now() - started

        expect(texts.map((text) => chatText(unchunked(text)))).toEqual(
          prompts.map((prompt) => numberedWords(prompt, 40).join('')),
        )
        expect(fake!.peak()).toBe(700)
        // One second of decoding; the rest is what 28 000 chunks cost on a small machine.
        expect(tookMs).toBeLessThan(8_000)
        expect(fake!.sockets).toEqual({ opened: 700, closed: 700 })
      },
    ),
  20_000,
)

test(
  'BL-B03: an answer of 200 MB to a client that does not read stays out of memory',
  () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'huge', megabytes: 200 })
      const before = process.memoryUsage.rss()
      let bytes = 0
      const socket = net.connect(fake!.port, '127.0.0.1', () => socket.write(request('hi')))
      socket.pause()
      await until(() => fake!.log.length === 1)
      await Bun.sleep(300)
      const stalled = process.memoryUsage.rss() - before

      socket.on('data', (part) => (bytes += part.length))
      socket.resume()
      await until(() => socket.destroyed, 15_000)
      expect(stalled / 1e6).toBeLessThan(60)
      expect(bytes / 1e6).toBeGreaterThan(200)
    }),
  20_000,
)

test(
  'an ordinary stream to a client that does not read holds the engine up',
  () =>
    withFakes(
      [{ kind: 'openai', models: [fastModel('m', { decodePerSecond: 5_000_000 })], answerTokens: 100_000 }],
      async (fake) => {
        const socket = net.connect(fake!.port, '127.0.0.1', () => socket.write(request('hi')))
        socket.pause()
        await until(() => fake!.running() === 1)
        await Bun.sleep(200)
        expect(fake!.running()).toBe(1)

        const parts: Buffer[] = []
        socket.on('data', (part: Buffer) => parts.push(part))
        socket.resume()
        await until(() => socket.destroyed, 15_000)
        expect(chatText(unchunked(Buffer.concat(parts).toString()))).toBe(numberedWords('hi', 100_000).join(''))
      },
    ),
  20_000,
)
