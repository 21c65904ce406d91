import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { chatText, until } from '../support/fakes'
import { testNode } from '../support/host'
import { startRawServer } from '../support/raw-server'
import { type Bench, withRouter } from '../support/router'

const JSON_ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'plain' }, finish_reason: 'stop' }],
})
const SSE_ANSWER = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'plain' }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`

const codings = {
  gzip: gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
} as const

interface Answer {
  readonly status?: number
  readonly headers?: string
  readonly body: Uint8Array
  /** What it says of its length; default: the truth. */
  readonly length?: number
}

const answerOf = ({ status = 200, headers = '', body, length = body.length }: Answer): Uint8Array =>
  Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${headers}content-length: ${length}\r\n\r\n`), body])

/** A router in front of a node that lists `m` and answers every chat with these very bytes. */
const withNode = async (
  answer: Answer,
  run: (bench: Bench, heads: () => readonly string[]) => Promise<void>,
  others: Parameters<typeof withRouter>[0] = [],
): Promise<void> => {
  const list = Buffer.from(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }))
  const node = startRawServer((connection, { head }) => {
    const isChat = head.startsWith('POST')
    const other = head.startsWith('GET /v1/models ') ? { body: list } : { status: 404, body: Buffer.from('{}') }
    connection.send(answerOf(isChat ? answer : { headers: 'content-type: application/json\r\n', ...other }))
    if (isChat && answer.length !== undefined) connection.end()
  })
  try {
    await withRouter(others, { awaitNodes: others.length > 0 }, async (bench) => {
      bench.router.fleet.addNode(testNode('raw', { kind: 'openai', url: node.url, maxConcurrency: 4 }))
      await until(() => bench.router.fleet.nodes().some(({ name, models }) => name === 'raw' && models.length > 0))
      await run(bench, () => node.requests.map(({ head }) => head).filter((head) => head.startsWith('POST')))
      await bench.idle()
    })
  } finally {
    node.stop()
  }
}

const cases = Object.entries(codings).flatMap(([coding, compress]) =>
  [true, false].flatMap((stream) =>
    [undefined, 'gzip, br, zstd'].map((accepts) => ({ coding, compress, stream, accepts })),
  ),
)

describe('BL-A05 a node that compresses unasked', () => {
  test.each(cases)('$coding, stream $stream: nobody gets bytes that its headers belie', async (given) => {
    const { coding, compress, stream, accepts } = given
    const type = stream ? 'text/event-stream' : 'application/json'
    const headers = `content-type: ${type}\r\ncontent-encoding: ${coding}\r\n`
    const body = compress(Buffer.from(stream ? SSE_ANSWER : JSON_ANSWER))
    await withNode({ headers, body }, async ({ chat }, heads) => {
      const answer = await chat({ stream, headers: accepts === undefined ? {} : { 'accept-encoding': accepts } })

      expect(answer.status).toBe(502)
      expect(answer.headers.has('content-encoding')).toBe(false)
      expect(await answer.json()).toMatchObject({
        error: { message: `'m' failed on raw: the node compressed its answer (${coding}) unasked` },
        fleet: { code: 'upstream_failed' },
      })
      for (const head of heads()) expect(head.toLowerCase()).toContain('accept-encoding: identity')
    })
  })

  test('and lies about its length is no better', async () => {
    const body = gzipSync(Buffer.from(JSON_ANSWER))
    const headers = 'content-type: application/json\r\ncontent-encoding: gzip\r\n'
    await withNode({ headers, body, length: body.length + 50 }, async ({ chat }) => {
      const answer = await chat({ stream: false })

      expect(answer.status).toBe(502)
      expect(await answer.json()).toMatchObject({ fleet: { code: 'upstream_failed' } })
    })
  })

  test('loses the request to one that does not', async () => {
    const headers = 'content-type: text/event-stream\r\ncontent-encoding: gzip\r\n'
    const answer = { headers, body: gzipSync(Buffer.from(SSE_ANSWER)) }
    await withNode(
      answer,
      async ({ chat }) => {
        for (let at = 0; at < 3; at++) {
          const reply = await chat()
          expect(reply.headers.has('content-encoding')).toBe(false)
          expect(chatText(await reply.text())).not.toBe('')
        }
      },
      [{ kind: 'openai' }],
    )
  })
})

test.each([true, false])('BL-A05 bytes that only call themselves identity pass, stream %p', async (stream) => {
  const type = stream ? 'text/event-stream' : 'application/json'
  const headers = `content-type: ${type}\r\ncontent-encoding: identity\r\n`
  await withNode({ headers, body: Buffer.from(stream ? SSE_ANSWER : JSON_ANSWER) }, async ({ chat }) => {
    const answer = await chat({ stream, headers: { 'accept-encoding': 'gzip' } })

    expect(answer.status).toBe(200)
    expect(answer.headers.has('content-encoding')).toBe(false)
    expect(await answer.text()).toContain('plain')
  })
})

test.each([204, 304])('BL-A05 a node that answers %d has not answered', async (status) => {
  const body = Buffer.alloc(0)
  await withNode({ status, headers: 'content-encoding: gzip\r\n', body }, async ({ chat }) => {
    const answer = await chat({ stream: false })

    expect(answer.status).toBe(502)
    expect(answer.headers.has('content-encoding')).toBe(false)
    expect(await answer.json()).toMatchObject({ fleet: { code: 'upstream_failed' } })
  })
})

test('BL-A05 HEAD of our own lists has the headers of GET and no body', async () => {
  await withRouter([{ kind: 'openai' }], {}, async ({ url }) => {
    const answer = await fetch(`${url}/v1/models`, { method: 'HEAD', headers: { 'accept-encoding': 'gzip' } })

    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toContain('application/json')
    expect(answer.headers.has('content-encoding')).toBe(false)
    expect(await answer.text()).toBe('')
  })
})
