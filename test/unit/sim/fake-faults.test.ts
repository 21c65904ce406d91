import { describe, expect, test } from 'bun:test'
import net from 'node:net'
import { numberedWords } from '../../../src/sim/fake/question'
import type { FakeNode } from '../../../src/sim/fake/options'
import {
  askChat,
  askOllama,
  chatText,
  fastModel,
  getJson,
  ollamaText,
  readJson,
  slowModel,
  until,
  withFakes,
} from '../../support/fakes'
import { startWatch } from '../../support/stopwatch'

/** Bytes that a bare socket gets for a bare request, and how the connection ended. */
const rawAsk = (fake: FakeNode, request: string): Promise<{ text: string; end: string }> =>
  new Promise((resolve) => {
    let text = ''
    let end = 'fin'
    const socket = net.connect(fake.port, '127.0.0.1', () => socket.write(request))
    socket.on('data', (bytes) => (text += bytes))
    socket.on('error', (error) => (end = (error as NodeJS.ErrnoException).code ?? 'error'))
    socket.on('close', () => resolve({ text, end }))
  })

const chatRequest = (more: object = { stream: true }, headers = ''): string => {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more })
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`
}

const CLOSE = 'connection: close\r\n'

describe('nothing comes', () => {
  test('BL-H12: freeze holds inference while polls answer, and lets go when taken away', () =>
    withFakes([{ kind: 'ollama' }], async (fake) => {
      const thaw = fake!.faults.add({ type: 'freeze' })
      let answered = false
      const answer = askOllama(fake!).then((each) => {
        answered = true
        return each.text()
      })
      await until(() => fake!.log.length === 1)

      expect((await getJson(`${fake!.url}/api/tags`)).status).toBe(200)
      expect(answered).toBe(false)
      expect(fake!.log[0]!.events.at(-1)!.event).toBe('frozen')
      thaw()
      expect(ollamaText(await answer)).not.toBe('')
    }))

  test('freeze and blackhole can hold everything', () =>
    withFakes([{ kind: 'ollama' }, { kind: 'ollama' }], async (frozen, black) => {
      frozen!.faults.add({ type: 'freeze', on: 'all' })
      black!.faults.add({ type: 'blackhole' })
      for (const fake of [frozen!, black!]) {
        expect(fetch(`${fake.url}/api/tags`, { signal: AbortSignal.timeout(60) })).rejects.toThrow()
      }
      await until(() => frozen!.sockets.closed === 1 && black!.sockets.closed === 1)
      expect(black!.log).toEqual([])
    }))

  test('refuse closes the listener and every connection, and comes back on the same port', () =>
    withFakes([{ kind: 'openai', models: [slowModel()] }], async (fake) => {
      const running = rawAsk(fake!, chatRequest())
      await until(() => fake!.running() === 1)
      const back = fake!.faults.add({ type: 'refuse' })

      expect((await running).end).toBe('ECONNRESET')
      expect(fetch(fake!.url)).rejects.toThrow()
      await until(() => fake!.running() === 0)
      back()
      expect((await fetch(`${fake!.url}/v1/models`)).status).toBe(200)
    }))

  test('BL-V01: half_open swallows the next request of a kept-alive connection only', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'half_open', on: 'all' })
      const socket = net.connect(fake!.port, '127.0.0.1')
      let text = ''
      socket.on('data', (bytes) => (text += bytes))
      socket.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n')
      await until(() => text.includes('"object":"list"'))
      const length = text.length
      socket.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n')
      await until(() => fake!.log.length === 2)
      await Bun.sleep(30)

      expect(text).toHaveLength(length)
      expect(fake!.log[1]!.events.at(-1)!.event).toBe('swallowed')
      expect((await rawAsk(fake!, chatRequest({}, CLOSE))).text).toStartWith('HTTP/1.1 200')
      socket.destroy()
    }))
})

describe('connections break', () => {
  test('BL-V02: reset before the head, after the request was read', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'reset', afterMs: 20, times: 1 })

      expect(await rawAsk(fake!, chatRequest())).toEqual({ text: '', end: 'ECONNRESET' })
      expect((await rawAsk(fake!, chatRequest({}, CLOSE))).end).toBe('fin')
      expect(fake!.log).toHaveLength(2)
    }))

  test('cut resets after so many events and frees the slot', () =>
    withFakes(
      [{ kind: 'openai', models: [slowModel('m', { decodePerSecond: 200 })], answerTokens: 1000 }],
      async (fake) => {
        fake!.faults.add({ type: 'cut', afterChunks: 4 })
        const { text, end } = await rawAsk(fake!, chatRequest())

        expect(end).toBe('ECONNRESET')
        expect(text.match(/data: /g)).toHaveLength(4)
        expect(fake!.running()).toBe(0)
      },
    ))

  test('cut resets a whole answer in its middle', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'cut', afterChunks: 0 })
      const { text, end } = await rawAsk(fake!, chatRequest({}))

      expect(end).toBe('ECONNRESET')
      expect(text).toContain('"object":"chat.completion"')
      expect(text).not.toContain('"usage"')
    }))

  test('BL-S07: truncate ends cleanly without the end marker, or closes without the last chunk', () =>
    withFakes([{ kind: 'ollama' }], async (fake) => {
      fake!.faults.add({ type: 'truncate', afterChunks: 5 })
      const native = await (await askOllama(fake!)).text()
      const openai = await (await askChat(fake!)).text()
      fake!.faults.clear()
      fake!.faults.add({ type: 'truncate', afterChunks: 5, framing: 'fin' })
      const raw = await rawAsk(fake!, chatRequest())

      expect(native.trim().split('\n')).toHaveLength(5)
      expect(native).not.toContain('"done":true')
      expect(openai).not.toContain('[DONE]')
      expect([raw.end, raw.text.endsWith('\r\n0\r\n\r\n'), raw.text.match(/data: /g)!.length]).toEqual([
        'fin',
        false,
        5,
      ])
    }))

  test('BL-C02: evict_busy kills running answers to make room', () =>
    withFakes(
      [{ kind: 'llamacpp-router', maxResident: 1, answerTokens: 50, models: [slowModel('a'), fastModel('b')] }],
      async (fake) => {
        fake!.faults.add({ type: 'evict_busy' })
        const body = JSON.stringify({ model: 'a', stream: true, messages: [] })
        const first = rawAsk(
          fake!,
          `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
        await until(() => fake!.running('a') === 1)
        const second = await askChat(fake!, { model: 'b' })

        expect(chatText(await second.text())).toBe(numberedWords('hi', 50).join(''))
        expect((await first).end).toBe('ECONNRESET')
        expect(fake!.interrupted()).toBe(1)
        expect(fake!.loads.at(-1)!.evicted).toEqual(['a'])
      },
    ))
})

describe('wrong answers', () => {
  test('BL-H01: status storms come with the body asked for, on what they match, so many times', () =>
    withFakes([{ kind: 'ollama' }], async (fake) => {
      fake!.faults.add({
        type: 'status',
        status: 503,
        body: 'html',
        times: 2,
        match: { path: '/api/chat' },
        headers: { 'retry-after': '1' },
      })
      const html = await askOllama(fake!)
      const other = await askChat(fake!)
      await askOllama(fake!)
      const after = await askOllama(fake!)

      expect([html.status, html.headers.get('content-type'), html.headers.get('retry-after')]).toEqual([
        503,
        'text/html; charset=utf-8',
        '1',
      ])
      expect([other.status, after.status]).toEqual([200, 200])
    }))

  test("a refusal has the engine's own error body", () =>
    withFakes([{ kind: 'ollama' }, { kind: 'llamacpp' }, { kind: 'openai' }], async (...fakes) => {
      for (const fake of fakes) fake.faults.add({ type: 'status', status: 400, message: 'context exceeded' })
      const [ollama, llama, openai] = fakes

      expect(await readJson(askOllama(ollama!))).toEqual({ error: 'context exceeded' })
      expect((await readJson(askChat(ollama!))).error).toMatchObject({
        type: 'invalid_request_error',
        message: 'context exceeded',
      })
      expect((await readJson(askChat(llama!))).error).toMatchObject({ type: 'invalid_request_error', code: 400 })
      expect((await readJson(askChat(openai!))).error.type).toBe('BadRequestError')
    }))

  test('BL-S08: an error inside a 200: JSON, HTML, first event, later event', () =>
    withFakes([{ kind: 'openai' }, { kind: 'ollama' }], async (fake, ollama) => {
      fake!.faults.add({ type: 'body_error', shape: 'json', message: 'model not found', times: 1 })
      fake!.faults.add({ type: 'body_error', shape: 'html', times: 1 })
      fake!.faults.add({ type: 'body_error', shape: 'event', times: 1 })
      ollama!.faults.add({ type: 'body_error', shape: 'event', afterChunks: 2, message: 'boom' })

      const json = await askChat(fake!)
      expect([json.status, await json.json()]).toEqual([200, { error: 'model not found' }])
      expect(await (await askChat(fake!)).text()).toStartWith('<html>')
      expect(await (await askChat(fake!)).text()).toStartWith('data: {"error":')
      expect(await (await askChat(fake!)).text()).toContain('[DONE]')
      const lines = (await (await askOllama(ollama!)).text()).trim().split('\n')
      expect([lines.length, lines.at(-1)]).toEqual([3, '{"error":"boom"}'])
    }))

  test('an error as the whole body meets only as many requests as its chance says', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'body_error', shape: 'json', chance: 0 })

      expect(await (await askChat(fake!)).text()).toContain('[DONE]')
    }))

  test('a body whose members have the wrong types is refused, whatever the engine', () =>
    withFakes([{ kind: 'openai' }, { kind: 'llamacpp' }, { kind: 'ollama' }], async (...fakes) => {
      for (const fake of fakes) expect((await askChat(fake, { more: { messages: 7 } })).status).toBe(400)
    }))

  test('garbage instead of HTTP, and a head beyond every limit', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'garbage', times: 1 })
      expect((await rawAsk(fake!, chatRequest())).text).not.toStartWith('HTTP')
      fake!.faults.add({ type: 'oversized_header', bytes: 100_000 })
      expect((await rawAsk(fake!, chatRequest({}, CLOSE))).text.length).toBeGreaterThan(100_000)
    }))

  test('BL-A05: plain bytes labelled as gzip', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'gzip_label' })
      const { text } = await rawAsk(fake!, chatRequest({}, CLOSE))

      expect(text).toContain('content-encoding: gzip\r\n')
      expect(text).toContain('"object":"chat.completion"')
    }))

  test('lies about residency, and expiries in the past', () =>
    withFakes([{ kind: 'ollama', models: [fastModel('a'), fastModel('b')] }], async (fake) => {
      await fake!.load('a')
      fake!.faults.add({ type: 'lie_resident', model: 'b' })
      fake!.faults.add({ type: 'stale_expiry', agoMs: 60_000, match: { model: 'a' } })
      const { models } = (await getJson(`${fake!.url}/api/ps`)).json

      expect(models.map((model: { name: string }) => model.name).sort()).toEqual(['a:latest', 'b:latest'])
      const stale = models.find((model: { name: string }) => model.name === 'a:latest')
      expect(Date.parse(stale.expires_at)).toBeLessThan(Date.now() - 59_000)
      expect(fake!.resident()).toEqual(['a'])
    }))
})

describe('slowness', () => {
  test('polls alone can be slow', () =>
    withFakes([{ kind: 'ollama' }], async (fake) => {
      fake!.faults.add({ type: 'slow', ms: 300, on: 'polls', match: { path: '/api/tags' } })
      const timed = async (path: string) => {
        const started = performance.now()
        const taken = startWatch()
        await (await fetch(fake!.url + path)).text()
        return { ms: performance.now() - started, ownMs: taken() }
      }

      expect((await timed('/api/tags')).ms).toBeGreaterThan(290)
      expect((await timed('/api/ps')).ownMs).toBeLessThan(250)
    }))

  test('a gap is silent, then the rest comes whole', () =>
    withFakes([{ kind: 'openai' }], async (fake) => {
      fake!.faults.add({ type: 'gap', afterChunks: 3, ms: 300 })
      const started = performance.now()
      const taken = startWatch()
      const reader = (await askChat(fake!)).body!.getReader()
      const first = await reader.read()
      const firstMs = taken()
      let text = Buffer.from(first.value!).toString()
      for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value)

      expect(firstMs).toBeLessThan(250)
      expect(performance.now() - started).toBeGreaterThan(295)
      expect(chatText(text)).toBe(numberedWords('hi', 16).join(''))
      expect(text).toEndWith('data: [DONE]\n\n')
    }))

  test('BL-C08: a load is slow, or fails once and works the next time', () =>
    withFakes([{ kind: 'ollama' }, { kind: 'llamacpp-router' }], async (...fakes) => {
      for (const fake of fakes) {
        fake.faults.add({ type: 'slow_load', ms: 80, times: 1 })
        fake.faults.add({ type: 'fail_load', times: 1, message: 'out of memory' })
        const started = performance.now()
        const failed = await askChat(fake)

        expect(performance.now() - started).toBeGreaterThan(95)
        expect([failed.status, (await readJson(failed)).error.message]).toEqual([500, 'out of memory'])
        expect((await askChat(fake)).status).toBe(200)
      }
    }))

  test('BL-D11: linger keeps the slot of a client that left until its first token', () =>
    withFakes([{ kind: 'openai', slots: 1, models: [fastModel('m', { prefillPerSecond: 10 })] }], async (fake) => {
      fake!.faults.add({ type: 'linger', times: 1 })
      const control = new AbortController()
      const left = askChat(fake!, { prompt: 'x'.repeat(8), signal: control.signal }).catch(() => 'left')
      await until(() => fake!.running() === 1)
      control.abort()
      expect(await left).toBe('left')
      await until(() => fake!.sockets.closed === 1)
      await Bun.sleep(60)

      expect(fake!.running()).toBe(1)
      await until(() => fake!.running() === 0)
    }))

  test('a chance lets only some requests fail, the same ones for the same seed', async () => {
    const statuses = () =>
      withFakes([{ kind: 'openai', seed: 7, answerTokens: 1 }], async (fake) => {
        fake!.faults.add({ type: 'status', status: 500, chance: 0.5 })
        const all: number[] = []
        for (let index = 0; index < 16; index += 1) all.push((await askChat(fake!)).status)
        return all
      })
    const first = await statuses()

    expect(new Set(first)).toEqual(new Set([200, 500]))
    expect(await statuses()).toEqual(first)
  })
})
