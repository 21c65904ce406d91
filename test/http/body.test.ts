import { expect, test } from 'bun:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { readBody } from '../../src/http/body'
import { bytes, host } from './harness'

const chatBody = JSON.stringify({ model: 'qwen', text: 'x'.repeat(500) })

const chunked = (size: number, pieces: number): ReadableStream<Uint8Array> => {
  let sent = 0
  return new ReadableStream({
    pull: (controller) => {
      if (sent++ === pieces) controller.close()
      else controller.enqueue(new Uint8Array(size).fill(0x20))
    },
  })
}

const nobody = { hold() {}, release() {} }

const upload = (body: ReadableStream<Uint8Array>): Request => new Request('http://localhost/', { method: 'POST', body })

test.each([
  ['gzip', gzipSync(chatBody)],
  ['deflate', deflateSync(chatBody)],
  ['br', brotliCompressSync(chatBody)],
  ['zstd', zstdCompressSync(chatBody)],
  ['identity', bytes(chatBody)],
])('a %s body arrives decoded', async (encoding, body) => {
  const { post, arrivals } = host()

  await post('/v1/chat/completions', new Uint8Array(body), { 'content-encoding': encoding })

  expect(new TextDecoder().decode(arrivals[0]?.body)).toBe(chatBody)
})

test('a small body that unpacks to more than the limit is refused', async () => {
  const { post, jobs } = host({ maxBodyBytes: 1_000_000 })

  const response = await post('/v1/chat/completions', new Uint8Array(gzipSync(new Uint8Array(5_000_000))), {
    'content-encoding': 'gzip',
  })

  expect(response.status).toBe(413)
  expect(((await response.json()) as { message: string }).message).toContain('1 MB')
  expect(jobs).toEqual([])
})

test.each([
  ['gzip', 'not gzip at all'],
  ['pack200', '{}'],
])('a body that is not what its Content-Encoding %s says is refused', async (encoding, body) => {
  const response = await host().post('/v1/chat/completions', body, { 'content-encoding': encoding })

  expect(response.status).toBe(400)
})

test('BL-B01: a declared length over the limit is refused in the dialect of the client, naming the limit', async () => {
  const { server, jobs } = host({ maxBodyBytes: 2_000_000 })
  const request = new Request('http://localhost/api/chat', {
    method: 'POST',
    body: 'x',
    headers: { 'content-length': '2000001' },
  })

  const response = await server.handle(request)

  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({
    shape: 'ollama',
    code: 'request_too_large',
    message: expect.stringContaining('2 MB'),
  })
  expect(jobs).toEqual([])
})

test('BL-B01: a body without a length is taken up to the limit and not beyond', async () => {
  const limit = 1_000_000

  const whole = await readBody(upload(chunked(100_000, 10)), limit, nobody)
  const over = readBody(upload(chunked(100_000, 11)), limit, nobody)

  expect(whole.byteLength).toBe(limit)
  expect(over).rejects.toMatchObject({ code: 'request_too_large' })
})

test('an upload that breaks off is the client leaving, and nothing to log', async () => {
  const { server, warnings } = host()
  const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('gone')) })

  const response = await server.handle(
    new Request('http://localhost/v1/chat/completions', { method: 'POST', body: broken }),
  )

  expect(response.status).toBe(499)
  expect(warnings).toEqual([])
})
