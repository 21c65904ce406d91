import { describe, expect, test } from 'bun:test'
import { embeddingOf } from '../../src/sim/fake/question'
import { until } from '../support/fakes'
import { post } from './media-clients'
import { withRouter } from '../support/router'

const e = {
  name: 'e',
  sizeGb: 1,
  contextTokens: 2048,
  capabilities: ['embedding'] as const,
  prefillPerSecond: 1e6,
  decodePerSecond: 1e6,
  loadMs: 1,
}
const ollama = { kind: 'ollama', models: [e], resident: ['e'] } as const
const generic = { kind: 'openai', models: [e] } as const

const floats = (text: string): number[] => {
  const bytes = Buffer.from(text, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
}
const rounded = (values: number[]): number[] => values.map(Math.fround)

for (const node of [ollama, generic]) {
  const native = node.kind === 'ollama' ? '/api/embed' : '/v1/embeddings'

  describe(`embeddings on a node of kind ${node.kind}`, () => {
    test('BL-E01 OpenAI: a text, a list and base64 reach the embedding endpoint and come back exact', () =>
      withRouter([node], {}, async ({ url, fakes }) => {
        const one = await post(url, '/v1/embeddings', { model: 'e', input: 'a' })
        expect(one.status).toBe(200)
        expect(one.json).toMatchObject({
          object: 'list',
          model: 'e',
          data: [{ object: 'embedding', index: 0, embedding: embeddingOf('a') }],
        })
        expect(one.json.usage).toEqual({ prompt_tokens: 1, total_tokens: 1 })

        const many = await post(url, '/v1/embeddings', { model: 'e', input: ['a', 'b'], encoding_format: 'base64' })
        const data = many.json.data as { embedding: string; index: number }[]
        expect(data.map(({ index }) => index)).toEqual([0, 1])
        expect(data.map(({ embedding }) => floats(embedding))).toEqual([
          rounded(embeddingOf('a')),
          rounded(embeddingOf('b')),
        ])

        const paths = fakes[0]?.log.filter(({ method }) => method === 'POST').map(({ path }) => path)
        expect(paths).toContain(native)
        expect(paths).not.toContain('/api/chat')
      }))

    test('BL-E01 Ollama: both endpoints answer in their own shape', () =>
      withRouter([node], {}, async ({ url }) => {
        const list = await post(url, '/api/embed', { model: 'e', input: ['a', 'b'] })
        expect(list.json).toMatchObject({ model: 'e', embeddings: [embeddingOf('a'), embeddingOf('b')] })
        expect(list.json.prompt_eval_count).toBe(2)

        const old = await post(url, '/api/embeddings', { model: 'e', prompt: 'a' })
        expect(old.json.embedding).toEqual(embeddingOf('a'))
      }))

    test('BL-E05 the member of the other endpoint is understood', () =>
      withRouter([node], {}, async ({ url }) => {
        const old = await post(url, '/api/embeddings', { model: 'e', input: ['x'] })
        expect(old.json.embedding).toEqual(embeddingOf('x'))
        const list = await post(url, '/api/embed', { model: 'e', prompt: 'x' })
        expect(list.json.embeddings).toEqual([embeddingOf('x')])
        const two = await post(url, '/api/embeddings', { model: 'e', input: ['x', 'y'] })
        expect(two.status).toBe(400)
      }))

    test('nothing to embed only loads the model', () =>
      withRouter([node], {}, async ({ url }) => {
        expect((await post(url, '/api/embed', { model: 'e', input: [] })).json).toMatchObject({ embeddings: [] })
        expect((await post(url, '/v1/embeddings', { model: 'e', input: [] })).status).toBe(400)
      }))
  })
}

test('BL-E01 dimensions and token numbers reach a node that takes them; one that does not gets neither', () =>
  withRouter([generic], {}, async ({ url, fakes }) => {
    await post(url, '/v1/embeddings', { model: 'e', input: [1, 2, 3], dimensions: 256 })
    expect(fakes[0]?.log.at(-1)?.body).toMatchObject({ input: [1, 2, 3], dimensions: 256 })
  }))

test('token numbers for an engine that takes only text are the client’s error', () =>
  withRouter([ollama], {}, async ({ url }) => {
    const { status, json } = await post(url, '/v1/embeddings', { model: 'e', input: [[1, 2], [3]] })
    expect(status).toBe(400)
    expect(json.error).toMatchObject({ code: 'not_supported', param: 'input' })
  }))

test('BL-E01 a model that cannot embed is refused before any node is asked', () =>
  withRouter(
    [
      {
        ...ollama,
        models: [{ ...e, name: 'chatty', capabilities: ['chat', 'completion'] as const }],
        resident: ['chatty'],
      },
    ],
    {},
    async ({ url, fakes }) => {
      const { status, json } = await post(url, '/v1/embeddings', { model: 'chatty', input: 'a' })
      expect(status).toBe(400)
      expect(json.error).toMatchObject({ code: 'not_supported', message: "'chatty' does not support embedding." })
      expect(fakes[0]?.log.some(({ path }) => path.includes('embed'))).toBe(false)
    },
  ))

test('BL-E05 an empty vector from a node counts as a failure, and another node answers', async () => {
  using bare = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) =>
      Response.json({ object: 'list', data: url.endsWith('/models') ? [{ id: 'e' }] : [{ index: 0, embedding: [] }] }),
  })
  const describe = (index: number) => (index === 0 ? { url: bare.url.origin } : { distance: 1 })
  await withRouter([generic, generic], { describe }, async ({ url, of }) => {
    const { status, json } = await post(url, '/v1/embeddings', { model: 'e', input: 'a' })
    expect(status).toBe(200)
    expect(json.data).toMatchObject([{ embedding: embeddingOf('a') }])
    expect(of('attempt.failed')).toMatchObject([{ node: 'a', failure: { class: 'error_event' } }])
  })
})

const nan = { type: 'status', status: 500, message: 'failed to encode response: json: unsupported value: NaN' } as const

test('BL-E02 a text that fails alike on two nodes is the request’s fault: one retry, no breaker opens', () =>
  withRouter([generic, generic, generic], {}, async ({ url, fakes, of, router }) => {
    for (let round = 0; round < 8; round++) {
      const undo = fakes.map((fake) => fake.faults.add(nan))
      const before = of('attempt.failed').length
      const bad = await post(url, '/v1/embeddings', { model: 'e', input: ['good', 'bad'] })
      expect(bad.status).toBe(502)
      expect(JSON.stringify(bad.json)).toContain('NaN')
      expect(of('attempt.failed').length - before).toBe(2)
      for (const stop of undo) stop()
      expect((await post(url, '/v1/embeddings', { model: 'e', input: 'good' })).status).toBe(200)
    }
    expect(router.fleet.nodes().map(({ breaker }) => breaker)).toEqual(['closed', 'closed', 'closed'])
    expect(of('node.breaker')).toEqual([])
  }))

test('a server that does no embeddings is tried for them and goes on chatting: 501 opens no breaker', () =>
  withRouter([{ ...generic, models: [{ ...e, capabilities: ['chat'] as const }] }], {}, async ({ url, fakes, of }) => {
    const message = 'This server does not support embeddings. Start it with `--embeddings`'
    const undo = fakes[0]?.faults.add({ type: 'status', status: 501, message })
    for (let round = 0; round < 6; round++) {
      const { status, json } = await post(url, '/v1/embeddings', { model: 'e', input: 'a' })
      expect([status, JSON.stringify(json).includes('Start it with')]).toEqual([502, true])
    }
    undo?.()

    const chat = await post(url, '/v1/chat/completions', { model: 'e', messages: [{ role: 'user', content: 'hi' }] })

    expect(chat.status).toBe(200)
    expect(of('node.breaker')).toEqual([])
  }))

test('BL-E02 a breaker that many such requests opened at once closes again', () =>
  withRouter(
    [generic, generic],
    { policy: { use: 'residency', holdTimeoutMs: 5_000, rescoreEveryMs: 100, retries: 2 } as never },
    async ({ url, fakes, router }) => {
      for (const fake of fakes) fake.faults.add({ ...nan, afterMs: 50 })
      await Promise.all(Array.from({ length: 8 }, () => post(url, '/v1/embeddings', { model: 'e', input: 'bad' })))
      await until(() => router.fleet.nodes().every(({ breaker }) => breaker === 'closed'), 2_000)
    },
  ))
