import { describe, expect, test } from 'bun:test'
import type { FakeKind } from '../../src/sim/fake/options'
import { fastModel } from '../support/fakes'
import type { Bench } from '../support/router'
import { answer, chunk, LAST_CHUNK, startRawServer } from '../support/raw-server'
import {
  anthropicMessages,
  ask,
  asked,
  type Json,
  kinds,
  ollamaChat,
  openAiChat,
  pairs,
  quietly,
  settledRecord,
  shapes,
} from './clients'

const FOUR_WORDS = () => 'one two three four'

/** A fake whose model is in memory, so that nothing but the answer is at stake. */
const hot = (kind: FakeKind, more: object = {}) => ({ kind, resident: ['m'], models: [fastModel()], ...more })

/** Records of a kind's stream before its first word. */
const preamble = (kind: FakeKind): number => (kind === 'ollama' ? 0 : 1)

const errorsIn = (records: Json[]): Json[] => records.filter(({ error }) => error !== undefined)

const finishes = (records: Json[]): Json[] =>
  records.filter(
    ({ type, done, choices }) =>
      done === true || type === 'message_stop' || typeof choices?.[0]?.finish_reason === 'string',
  )

/** How often the breaker of a node has something against it. */
const breakerCount = (bench: Bench, node: string): number => {
  const snapshot = bench.router.fleet.shared.roster.get(node)?.node.getSnapshot() as {
    context: { failures: unknown[] }
  }
  return snapshot.context.failures.length
}

describe('a silent gap', () => {
  test.concurrent.each(pairs)('BL-S01 a quiet stream is not cut: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      bench.fakes[0]?.faults.add({ type: 'gap', afterChunks: 2, ms: 250 })

      const body = await (await ask(bench.url, shape)).text()

      expect(shape.isWhole(body)).toBe(true)
      expect(shape.text(body)).toMatch(/^tok1\.\w+ tok2.* tok16\.\w+$/)
      expect((await settledRecord(bench)).outcome).toMatchObject({ end: 'completed', phase: 'generating', retries: 0 })
      expect(bench.of('request.settled')).toHaveLength(1)
    }),
  )
})

describe('a stream that breaks', () => {
  test.each(pairs)('BL-S05 no retry after the first byte: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([hot(kind, { answer: FOUR_WORDS }), hot(kind, { answer: FOUR_WORDS })], {}, async (bench) => {
      const [a, b] = bench.fakes
      a?.faults.add({ type: 'cut', afterChunks: preamble(kind) + 3 })

      const body = await (await ask(bench.url, shape)).text()

      const records = shape.records(body)
      expect(shape.text(body)).toBe('one two three')
      expect(errorsIn(records)).toHaveLength(1)
      expect(records.at(-1)).toHaveProperty('error')
      expect(finishes(records)).toEqual([])
      expect(body).not.toContain('[DONE]')
      expect(asked(b as never)).toEqual([])
      const { outcome, failures } = await settledRecord(bench)
      expect(outcome).toMatchObject({ end: 'incomplete', node: 'a', retries: 0 })
      expect(failures).toMatchObject([{ node: 'a', class: 'reset', retried: false }])
      expect(breakerCount(bench, 'a')).toBe(1)
      await bench.idle()
    }),
  )

  test.each(pairs)('BL-S07 a truncated stream is incomplete: %s on %s', (_shape, _kind, shape, kind) =>
    quietly([hot(kind)], {}, async (bench) => {
      const samples = () => JSON.stringify(bench.router.store.learned.load().pairs)
      const before = samples()
      for (const [index, framing] of (['clean', 'fin'] as const).entries()) {
        const away = bench.fakes[0]?.faults.add({ type: 'truncate', afterChunks: 5, framing })
        const body = await (await ask(bench.url, shape)).text()
        away?.()

        expect(shape.isWhole(body)).toBe(false)
        expect(errorsIn(shape.records(body))).toHaveLength(1)
        const { outcome, failures } = await settledRecord(bench, index + 1)
        expect(outcome).toMatchObject({ end: 'incomplete', code: framing === 'clean' ? 'truncated' : 'reset' })
        expect(failures).toMatchObject([{ node: 'a', retried: false }])
        expect(breakerCount(bench, 'a')).toBe(index + 1)
      }
      expect(samples()).toBe(before)
      const metrics = await bench.metrics()
      expect(metrics).toMatch(/fleet_requests_total\{[^}]*node="a"[^}]*outcome="incomplete"\} 2/)
      expect(metrics).not.toContain('outcome="completed"')
    }),
  )

  test.each(pairs)(
    'BL-S07 a whole answer that is cut short is an error, not half a JSON: %s on %s',
    (_shape, _kind, shape, kind) =>
      quietly([hot(kind)], {}, async (bench) => {
        bench.fakes[0]?.faults.add({ type: 'truncate', afterChunks: 0 })

        const reply = await ask(bench.url, shape, { stream: false })

        expect(reply.status).toBe(502)
        expect(await reply.json()).toHaveProperty('error')
        expect((await settledRecord(bench)).outcome?.end).toBe('failed')
      }),
  )
})

describe('an error that is dressed as an answer', () => {
  const faults = [
    ['502 text/html', { type: 'status', status: 502, body: 'html' }],
    ['200 text/html', { type: 'body_error', shape: 'html' }],
    ['200 application/json', { type: 'body_error', shape: 'json', message: 'model not found' }],
  ] as const
  const cases = faults.flatMap(([what, fault]) => kinds.map((kind) => [what, kind, fault] as const))
  const ways = shapes.flatMap((shape) => [true, false].map((stream) => ({ shape, stream })))
  /** Several failures in a row are the point here. */
  const setup = { health: { breakerFailures: 1_000 } }

  test.each(cases)('BL-S08 %s from %s fails over, for every client', (_what, kind, fault) =>
    quietly([hot(kind), hot(kind)], setup, async (bench) => {
      bench.fakes[0]?.faults.add(fault)

      for (const { shape, stream } of ways) {
        const reply = await ask(bench.url, shape, { stream, headers: { 'x-fleet-tags': 'one' } })
        const body = await reply.text()

        expect(reply.status).toBe(200)
        expect(reply.headers.get('x-fleet-node')).toBe('b')
        if (stream) expect(shape.isWhole(body)).toBe(true)
        await bench.idle()
      }
      const failures = bench.of('attempt.failed')
      expect(failures.length).toBeGreaterThan(0)
      expect(failures.every(({ node, retried }) => node === 'a' && retried)).toBe(true)
      expect(bench.of('request.settled').every(({ outcome }) => outcome.end === 'completed')).toBe(true)
    }),
  )

  test.each(cases)('BL-S08 %s from %s without another node is our own error, for every client', (_what, kind, fault) =>
    quietly([hot(kind)], setup, async (bench) => {
      bench.fakes[0]?.faults.add(fault)

      for (const { shape, stream } of ways) {
        const reply = await ask(bench.url, shape, { stream })
        const body = await reply.text()

        expect(reply.status).toBe(502)
        expect(reply.headers.get('content-type')).toContain('application/json')
        expect(body).not.toContain('<html')
        const { error, fleet } = JSON.parse(body)
        if (shape.name.startsWith('OpenAI'))
          expect(error).toMatchObject({ type: 'server_error', code: 'upstream_failed' })
        else if (shape === anthropicMessages) expect(error).toMatchObject({ type: 'api_error' })
        else expect(error).toBeString()
        expect(fleet.message).toContain('on a')
      }
      expect(bench.of('request.settled').map(({ outcome }) => outcome.end)).toEqual(ways.map(() => 'failed'))
    }),
  )

  test.each(shapes.map((shape) => [shape.name, shape] as const))(
    'BL-S08 an error event in the middle of a stream stays the only error: %s',
    (_name, shape) =>
      quietly([hot('llamacpp', { models: [fastModel('m', { decodePerSecond: 100 })] })], {}, async (bench) => {
        bench.fakes[0]?.faults.add({ type: 'body_error', shape: 'event', afterChunks: 4, message: 'out of memory' })

        const body = await (await ask(bench.url, shape)).text()

        const errors = errorsIn(shape.records(body))
        expect(errors).toHaveLength(1)
        expect(JSON.stringify(errors)).toContain('out of memory')
        expect((await settledRecord(bench)).outcome?.end).toBe('incomplete')
      }),
  )
})

describe('an in-band error after half a record', () => {
  const head = (type: string) => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`
  const event = (content: string) => `data: {"model":"m","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
  const line = (content: string) => `{"model":"m","message":{"role":"assistant","content":"${content}"},"done":false}\n`
  const isJson = (text: string): boolean => {
    try {
      return JSON.parse(text) !== undefined
    } catch {
      return false
    }
  }
  const openAiModels = { object: 'list', data: [{ id: 'm', object: 'model' }] }

  /** An engine whose answer stops in the middle of its second record. */
  const halfway = (kind: 'openai' | 'ollama', then: 'end' | 'reset') =>
    startRawServer((connection, { head: request }) => {
      if (request.startsWith('GET /v1/models')) return connection.send(answer(JSON.stringify(openAiModels)))
      if (request.startsWith('GET /api/version')) return connection.send(answer('{"version":"0.30.0"}'))
      if (request.startsWith('GET /api/tags')) return connection.send(answer('{"models":[{"name":"m","size":1}]}'))
      if (request.startsWith('GET /api/ps'))
        return connection.send(answer('{"models":[{"name":"m","size":1,"context_length":4096}]}'))
      if (request.startsWith('GET') || request.includes('/api/show')) return connection.send(answer('{}'))
      const [type, record] =
        kind === 'openai' ? (['text/event-stream', event] as const) : (['application/x-ndjson', line] as const)
      connection.send(head(type) + chunk(record('one')) + chunk(record('two').slice(0, -25)))
      setTimeout(() => {
        if (then === 'end') connection.send(LAST_CHUNK)
        else connection.reset()
      }, 20)
    })

  const cases = (['openai', 'ollama'] as const).flatMap((kind) =>
    [openAiChat, ollamaChat].flatMap((shape) =>
      (['end', 'reset'] as const).flatMap((then) =>
        ['m', 'm:latest'].flatMap((model) =>
          [false, true].map((usage) => [shape.name, kind, then, model, usage, shape] as const),
        ),
      ),
    ),
  )

  test.each(cases)(
    'BL-W04 the error never glues to it: %s on %s, %s, asked as %s, usage %p',
    async (_name, kind, then, model, usage, shape) => {
      const engine = halfway(kind, then)
      const describe = () => ({ kind, url: engine.url })
      await quietly([{ kind: 'openai' }], { describe }, async (bench) => {
        const more = shape === openAiChat && usage ? { stream_options: { include_usage: true } } : {}
        const body = await (await ask(bench.url, shape, { model, more })).text()

        // Every record but a half one is JSON, and the error stands alone in the last.
        const records = shape === openAiChat ? body.split('\n\n') : body.split('\n')
        const whole = records.map((each) => each.replace(/^data: /, '')).filter((each) => each.trim() !== '')
        const error = JSON.parse(whole.at(-1) ?? '')
        expect(error).toHaveProperty('error')
        expect(whole.filter((each) => each.includes('"error"'))).toHaveLength(1)
        expect(body).toContain('one')
        // Only where the very bytes of the node go through can half a record have gone out before.
        const broken = whole.filter((each) => !isJson(each))
        const isRaw =
          shape === openAiChat ? usage && model === 'm' && kind === 'openai' : model === 'm' && kind === 'ollama'
        expect(broken.length).toBeLessThanOrEqual(isRaw ? 1 : 0)
        expect((await settledRecord(bench)).outcome?.end).toBe('incomplete')
      })
      engine.stop()
    },
  )
})
