import { describe, expect, test } from 'bun:test'
import type { Failure } from '../../../src/domain/facts'
import { stopAfterEach } from '../../support/ending'
import {
  answer,
  chunk,
  chunkedHead,
  LAST_CHUNK,
  type RawConnection,
  type RawServer,
  rawServers,
  until,
} from '../../support/raw-server'
import { forward, textOf } from './relay-harness'

const serve = rawServers(stopAfterEach())

const says = (wire: string, then?: 'end' | 'reset'): RawServer =>
  serve((connection) => {
    connection.send(wire)
    if (then) setTimeout(() => connection[then](), 10)
  })

const TOKEN = 'data: {"t":"one"}\n\n'
const DONE = 'data: [DONE]\n\n'
const IN_BAND = '\n\ndata: {"in_band":"upstream_failed"}\n\n'

describe('a stream', () => {
  test('begins with the first token, passes every byte and ends completed', async () => {
    const server = says(`${chunkedHead()}${chunk(': ping\n\n')}${chunk(TOKEN)}${chunk(DONE)}${LAST_CHUNK}`)

    const run = forward(server.url)
    const reply = await run.started()

    expect(reply).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    expect(await textOf(reply)).toBe(`: ping\n\n${TOKEN}${DONE}`)
    expect(run.heard.events).toEqual(['started', 'finished'])
    expect(run.heard.summary).toMatchObject({ end: 'completed', status: 200, bytes: 41, tokensIn: 3, tokensOut: 5 })
    expect(run.heard.summary?.failure).toBeUndefined()
  })

  test('does not begin with a comment', async () => {
    const server = serve((connection) => {
      connection.send(chunkedHead() + chunk(': ping\n\n'))
      setTimeout(() => connection.send(chunk(TOKEN)), 60)
    })

    const run = forward(server.url)
    await Bun.sleep(30)
    expect(run.heard.events).toEqual([])

    await run.started()
    expect(run.heard.firstByteMs).toBeGreaterThanOrEqual(55)
    run.attempt.abort()
  })

  test('hands on each piece as it comes', async () => {
    let connection: RawConnection | undefined
    const server = serve((given) => {
      connection = given
      given.send(chunkedHead() + chunk(TOKEN))
    })
    const reply = await forward(server.url).started()
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader()

    for (let i = 0; i < 5; i += 1) {
      const { value } = await reader.read()
      expect(Buffer.from(value as Uint8Array).toString()).toBe(TOKEN)
      connection?.send(chunk(TOKEN))
    }
    await reader.cancel()
  })

  test.each(['end', 'reset'] as const)(
    'BL-S05 BL-S07 BL-W04: broken after the first byte (%s) ends with the in-band error and counts as incomplete',
    async (way) => {
      const server = says(chunkedHead() + chunk(TOKEN), way)

      const run = forward(server.url)
      const text = await textOf(await run.started())

      expect(text).toBe(TOKEN + IN_BAND)
      expect(run.heard.events).toEqual(['started', 'finished'])
      expect(run.heard.summary).toMatchObject({ end: 'incomplete', failure: { class: 'reset', bytes: TOKEN.length } })
      expect(server.requests).toHaveLength(1)
    },
  )

  test('BL-S07: that ends cleanly without its end marker is incomplete', async () => {
    const server = says(chunkedHead() + chunk(TOKEN) + LAST_CHUNK)

    const run = forward(server.url)
    const text = await textOf(await run.started())

    expect(text).toBe(TOKEN + IN_BAND)
    expect(run.heard.summary).toMatchObject({ end: 'incomplete', failure: { class: 'truncated' } })
    expect(run.exchange.bands[0]?.details).toEqual({
      requestId: 'req_1',
      nodes: [{ node: 'rig', reason: 'truncated' }],
    })
  })

  test('ends with what the dialect still has to say', async () => {
    const transform = {
      contentType: 'text/event-stream',
      push: () => Buffer.from('piece '),
      end: () => Buffer.from('end'),
      complete: () => true,
      problem: () => undefined,
      begun: () => true,
      usage: () => ({}),
    }

    const run = forward(says(chunkedHead() + chunk('x') + LAST_CHUNK).url, { exchange: { reply: () => transform } })

    expect(await textOf(await run.started())).toBe('piece end')
    expect(run.heard.summary).toMatchObject({ end: 'completed', bytes: 9 })
  })

  test('that is reset after its end marker is complete', async () => {
    const server = says(chunkedHead() + chunk(TOKEN) + chunk(DONE), 'reset')

    const run = forward(server.url)

    expect(await textOf(await run.started())).toBe(TOKEN + DONE)
    expect(run.heard.summary?.end).toBe('completed')
  })

  test("an error event after the first token is the node's own: nothing is added, and it is incomplete", async () => {
    const error = 'data: {"error":"out of memory"}\n\n'
    const server = serve((connection) => {
      connection.send(chunkedHead() + chunk(TOKEN))
      setTimeout(() => connection.send(chunk(error) + LAST_CHUNK), 20)
    })

    const run = forward(server.url)

    expect(await textOf(await run.started())).toBe(TOKEN + error)
    expect(run.heard.summary).toMatchObject({
      end: 'incomplete',
      failure: { class: 'error_event', message: 'out of memory' },
    })
  })
})

describe('before the first byte', () => {
  test.each([
    [
      'BL-S08: a web page with status 200',
      answer('<html>', 'HTTP/1.1 200 OK', 'text/html; charset=utf-8'),
      'bad_content',
    ],
    ['an answer compressed unasked', answer('x', 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip'), 'bad_content'],
    ['BL-S08: an error as the first event', `${chunkedHead()}${chunk('data: {"error":"no"}\n\n')}`, 'error_event'],
    ['BL-S08: a JSON error with status 200', answer('{"error":"model not found"}'), 'error_event'],
    ['a stream without a token', chunkedHead() + LAST_CHUNK, 'truncated'],
    ['a status of 500', answer('{"error":{"message":"boom"}}', 'HTTP/1.1 500 No'), 'status'],
    ['a redirect', answer('', 'HTTP/1.1 302 Found\r\nlocation: /x'), 'status'],
    ["401, which is about the router's key", answer('{}', 'HTTP/1.1 401 No'), 'status'],
    ['403', answer('{}', 'HTTP/1.1 403 No'), 'status'],
    ['408', answer('{}', 'HTTP/1.1 408 No'), 'status'],
    ['425', answer('{}', 'HTTP/1.1 425 No'), 'status'],
    ['a 404 that is a web page', answer('<html>', 'HTTP/1.1 404 No', 'text/html'), 'status'],
    ['429', answer('{}', 'HTTP/1.1 429 No'), 'overloaded'],
    ['503 of a full Ollama', answer('{"error":"server busy, please try again."}', 'HTTP/1.1 503 No'), 'overloaded'],
    ['503 of a full queue', answer('{"error":"the queue is full"}', 'HTTP/1.1 503 No'), 'overloaded'],
    [
      '503 of a llama-server that starts',
      answer('{"error":{"message":"Loading model"}}', 'HTTP/1.1 503 No'),
      'starting',
    ],
    ['503 otherwise', answer('{"error":"no"}', 'HTTP/1.1 503 No'), 'status'],
    ['what is not HTTP', 'SSH-2.0\r\n', 'protocol'],
  ])('%s is a failure that nobody saw', async (_what, wire, kind) => {
    const run = forward(says(wire).url)
    await run.over()

    expect(run.heard.events).toEqual(['failed'])
    expect(run.heard.failure?.class).toBe(kind as Failure['class'])
    expect(run.heard.rejected).toBeUndefined()
  })

  test.each(['end', 'reset'] as const)('a connection that breaks (%s) is a reset', async (way) => {
    const run = forward(says(chunkedHead() + chunk(': ping\n\n'), way).url)
    await run.over()

    expect(run.heard.events).toEqual(['failed'])
    expect(run.heard.failure).toMatchObject({ class: 'reset', bytes: 8 })
  })

  test('a node that is not there is a failure of class connect', async () => {
    const server = says('')
    server.stop()

    const run = forward(server.url)
    await run.over()

    expect(run.heard.failure?.class).toBe('connect')
  })

  test('a failure closes the connection instead of reading on', async () => {
    const server = says('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>')

    await forward(server.url).over()

    await until(() => server.open() === 0, 'the node sees it', 1_000)
  })

  test("the message has the status and the node's JSON error text, cut short", async () => {
    const body = JSON.stringify({ error: { message: 'x'.repeat(1_000) } })

    const run = forward(says(answer(body, 'HTTP/1.1 500 No')).url)
    await run.over()

    expect(run.heard.failure?.status).toBe(500)
    expect(run.heard.failure?.message).toMatch(/^the node answered 500: x+$/)
    expect(run.heard.failure?.message.length).toBeLessThan(330)
  })

  test('BL-S08: the text of a web page goes into no message', async () => {
    const run = forward(says(answer('<html>secret</html>', 'HTTP/1.1 502 Bad', 'text/html')).url)
    await run.over()

    expect(run.heard.failure?.message).toBe('the node answered 502')
  })

  test("the node's own 4xx comes with its body as the dialect renders it", async () => {
    const body = '{"error":{"message":"context too long"}}'

    const run = forward(says(answer(body, 'HTTP/1.1 400 Bad')).url)
    await run.over()

    expect(run.heard.events).toEqual(['failed'])
    expect(run.heard.failure).toMatchObject({ class: 'rejected', status: 400 })
    expect(run.heard.rejected?.status).toBe(400)
    expect(await textOf(run.heard.rejected as never)).toBe(body)
  })

  test('of a 4xx at most 1 MB is read', async () => {
    const server = serve((connection) => {
      connection.send('HTTP/1.1 400 Bad\r\n\r\n')
      connection.send(Buffer.alloc(3_000_000, 'x'))
    })

    const run = forward(server.url)
    await run.over()

    expect(run.heard.rejected?.body).toHaveLength(1024 * 1024)
    await until(() => server.open() === 0, 'the rest was refused')
  })
})

describe('an answer in one piece', () => {
  test('is kept back until it is whole', async () => {
    const server = says(answer('{"a":1}'))

    const run = forward(server.url, { stream: false })
    await run.over()

    expect(run.heard.events).toEqual(['started', 'finished'])
    expect(run.heard.reply?.body).toBeInstanceOf(Uint8Array)
    expect(run.heard.reply?.headers).toEqual({ 'content-type': 'application/json' })
    expect(await textOf(run.heard.reply as never)).toBe('{"a":1}')
    expect(run.heard.summary).toMatchObject({ end: 'completed', bytes: 7 })
  })

  test.each(['end', 'reset'] as const)(
    'BL-W05: from a node that dies halfway (%s) can still be replaced',
    async (way) => {
      const run = forward(says('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a":', way).url, { stream: false })
      await run.over()

      expect(run.heard.events).toEqual(['failed'])
      expect(run.heard.failure?.class).toBe('reset')
    },
  )

  test('that ends before its JSON does is truncated', async () => {
    const run = forward(says('HTTP/1.0 200 OK\r\n\r\n{"a":', 'end').url, { stream: false })
    await run.over()

    expect(run.heard.failure?.class).toBe('truncated')
  })

  test('above 1 MB goes out as it comes', async () => {
    const server = serve((connection) => {
      connection.send(`HTTP/1.1 200 OK\r\ncontent-length: 3000003\r\n\r\n`)
      connection.send(Buffer.alloc(3_000_000, 'x'))
      setTimeout(() => connection.send('END'), 20)
    })

    const run = forward(server.url, { stream: false })
    const reply = await run.started()

    expect(reply.body).toBeInstanceOf(ReadableStream)
    expect((await textOf(reply)).length).toBe(3_000_003)
    expect(run.heard.summary).toMatchObject({ end: 'completed', bytes: 3_000_003 })
  })

  test('above 1 MB that breaks ends visibly broken, for there is no place for an error', async () => {
    const server = serve((connection) => {
      connection.send(`HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\r\n`)
      connection.send(Buffer.alloc(3_000_000, 'x'))
      setTimeout(() => connection.reset(), 30)
    })

    const run = forward(server.url, { stream: false })
    const reply = await run.started()

    expect(textOf(reply)).rejects.toThrow()
    await run.over()
    expect(run.heard.summary).toMatchObject({ end: 'incomplete', failure: { class: 'reset' } })
    expect(run.exchange.bands).toEqual([])
  })
})

describe('leaving and cutting', () => {
  const endless = (): RawServer => serve((connection) => connection.send(chunkedHead() + chunk(TOKEN)))

  test('BL-D01 BL-D03: a client that cancels is reported once and closes the upstream connection', async () => {
    const server = endless()
    const run = forward(server.url)
    const reader = ((await run.started()).body as ReadableStream<Uint8Array>).getReader()
    await reader.read()

    await reader.cancel()

    await until(() => server.open() === 0, 'the node sees it', 1_000)
    run.attempt.abort()
    expect(run.heard.events).toEqual(['started', 'left'])
    expect(run.heard.leftBytes).toBe(TOKEN.length)
  })

  test('BL-D05: aborting before the first byte closes the connection and tells nobody', async () => {
    const server = serve((connection) => connection.send(chunkedHead()))
    const run = forward(server.url)
    await until(() => server.requests.length === 1, 'the request arrived')

    run.attempt.abort()

    await until(() => server.open() === 0, 'the node sees it', 1_000)
    await Bun.sleep(10)
    expect(run.heard.events).toEqual([])
  })

  test('BL-D05: aborting before the head of the answer closes the connection and tells nobody', async () => {
    const server = serve(() => {})
    const run = forward(server.url)
    await until(() => server.requests.length === 1, 'the request arrived')

    run.attempt.abort()

    await until(() => server.open() === 0, 'the node sees it', 1_000)
    await Bun.sleep(10)
    expect(run.heard.events).toEqual([])
  })

  test('aborting after the first byte ends the body visibly and tells nobody', async () => {
    const server = endless()
    const run = forward(server.url)
    const reply = await run.started()
    const text = textOf(reply)

    run.attempt.abort()

    expect(text).rejects.toThrow()
    await until(() => server.open() === 0, 'the node sees it', 1_000)
    await Bun.sleep(10)
    expect(run.heard.events).toEqual(['started'])
  })

  test('cutting ends the body with the in-band error and closes the connection', async () => {
    const server = endless()
    const run = forward(server.url)
    const text = textOf(await run.started())
    await Bun.sleep(10)

    const failure: Failure = { class: 'idle_timeout', message: 'silent for 60 s', bytes: 18, elapsedMs: 60_000 }
    run.gateway.cut('req_1', failure)
    run.gateway.cut('req_1', failure)

    expect(await text).toBe(`${TOKEN}\n\ndata: {"in_band":"upstream_timeout"}\n\n`)
    expect(run.heard.events).toEqual(['started', 'finished'])
    expect(run.heard.summary).toMatchObject({ end: 'incomplete', failure })
    await until(() => server.open() === 0, 'the node sees it', 1_000)
  })

  test('cutting gives a client that was slow what had arrived for it first', async () => {
    const server = endless()
    const run = forward(server.url)
    const reply = await run.started()
    await until(() => run.flow.clientStalledSince > 0, 'a piece waits for the client')

    run.gateway.cut('req_1', { class: 'reset', message: 'shutting down', bytes: 0, elapsedMs: 0 })

    expect(await textOf(reply)).toBe(TOKEN + IN_BAND)
    expect(run.flow.clientStalledSince).toBe(0)
  })

  test('cutting before the first byte fails the attempt', async () => {
    const server = serve((connection) => connection.send(chunkedHead()))
    const run = forward(server.url)
    await until(() => server.requests.length === 1, 'the request arrived')

    run.gateway.cut('req_1', { class: 'reset', message: 'shutting down', bytes: 0, elapsedMs: 0 })
    run.attempt.abort()

    expect(run.heard.events).toEqual(['failed'])
    await until(() => server.open() === 0, 'the node sees it', 1_000)
  })

  test('cutting before the head of the answer closes the connection', async () => {
    const server = serve(() => {})
    const run = forward(server.url)
    await until(() => server.requests.length === 1, 'the request arrived')

    run.gateway.cut('req_1', { class: 'reset', message: 'shutting down', bytes: 0, elapsedMs: 0 })

    await until(() => server.open() === 0, 'the node sees it')
    expect(run.heard.events).toEqual(['failed'])
  })

  test('cutting what is over or unknown does nothing', async () => {
    const run = forward(says(answer('{}')).url, { stream: false })
    await run.over()

    run.gateway.cut('req_1', { class: 'reset', message: '', bytes: 0, elapsedMs: 0 })
    run.gateway.cut('req_2', { class: 'reset', message: '', bytes: 0, elapsedMs: 0 })

    expect(run.heard.events).toEqual(['started', 'finished'])
  })
})

describe('flow', () => {
  test('tells when the last byte came, how many came, and since when the client does not take them', async () => {
    let connection: RawConnection | undefined
    const server = serve((given) => {
      connection = given
      given.send(chunkedHead() + chunk(TOKEN))
    })
    const run = forward(server.url)
    const reader = ((await run.started()).body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    const firstAt = run.flow.lastByteAt
    expect(run.flow).toMatchObject({ bytes: TOKEN.length, clientStalledSince: 0 })

    await Bun.sleep(10)
    connection?.send(chunk(TOKEN))
    await until(() => run.flow.bytes === 2 * TOKEN.length, 'the second token arrived')

    expect(run.flow.lastByteAt).toBeGreaterThan(firstAt)
    expect(run.flow.clientStalledSince).toBe(run.flow.lastByteAt)
    await reader.read()
    await until(() => run.flow.clientStalledSince === 0, 'the client took it')
    await reader.cancel()
  })
})
