import { describe, expect, test } from 'bun:test'
import { createUpstreamClient, type UpstreamOptions } from '../../../src/nodes/http1'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from '../../../src/nodes/upstream'
import { NodeFault } from '../../../src/ports/node-gateway'
import { stopAfterEach } from '../../support/ending'
import { answer, chunk, chunkedHead, LAST_CHUNK, type RawConnection, rawServers, until } from '../../support/raw-server'

const stopLater = stopAfterEach()
const serve = rawServers(stopLater)

const clientWith = (options: Partial<UpstreamOptions> = {}): UpstreamClient => {
  const client = createUpstreamClient({ idleMs: 10_000, now: () => Date.now(), ...options })
  stopLater(() => client.close())
  return client
}

const post = (url: string, options: Partial<UpstreamSend> = {}): UpstreamSend => ({
  url,
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"model":"m"}'),
  connectTimeoutMs: 1_000,
  signal: new AbortController().signal,
  ...options,
})

const readAll = async (reply: UpstreamReply): Promise<string> => {
  let text = ''
  for (let piece = await reply.read(); piece; piece = await reply.read()) text += Buffer.from(piece).toString('latin1')
  return text
}

const failureOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof NodeFault)) throw new Error(`expected a NodeFault, got ${String(error)}`)
  return error.failure
}

describe('request', () => {
  test('has host, length, identity coding and the given headers, in one piece with its body', async () => {
    const server = serve((connection) => connection.send(answer('{}')))

    const reply = await clientWith().send(post(`${server.url}/v1/chat?x=1`, { headers: { 'x-a': 'b' } }))

    expect(await readAll(reply)).toBe('{}')
    expect(server.requests[0]?.head).toBe(
      [
        'POST /v1/chat?x=1 HTTP/1.1',
        `host: 127.0.0.1:${server.port}`,
        'accept-encoding: identity',
        'content-length: 13',
        'x-a: b',
      ].join('\r\n'),
    )
    expect(server.requests[0]?.body).toBe('{"model":"m"}')
  })

  test('of 20 MB arrives whole through partial writes', async () => {
    const body = Buffer.alloc(20_000_000, 'abcdefghij')
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => new Response(Bun.hash(await request.arrayBuffer()).toString()),
    })
    stopLater(() => void server.stop(true))

    const reply = await clientWith().send(post(`http://127.0.0.1:${server.port}/`, { body }))

    expect(await readAll(reply)).toBe(Bun.hash(body).toString())
  })

  test('with a line break in a header or a space in the path is not sent', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith()

    expect((await failureOf(client.send(post(server.url, { headers: { a: 'b\r\nc: d' } })))).class).toBe('protocol')
    expect((await failureOf(client.send(post(`${server.url}/a b`)))).class).toBe('protocol')
    expect((await failureOf(client.send(post('ftp://127.0.0.1/')))).class).toBe('protocol')
    expect(server.connections).toHaveLength(0)
  })
})

describe('answer', () => {
  test('is the same wherever the stream of bytes is split', async () => {
    const wire = `HTTP/1.1 100 Continue\r\n\r\n${chunkedHead()}${chunk('data: a\n\n')}${chunk('b')}${LAST_CHUNK}`
    let cut = 0
    const server = serve((connection) => {
      connection.send(wire.slice(0, cut))
      setTimeout(() => connection.send(wire.slice(cut)), 1)
    })
    const client = clientWith()

    for (cut = 1; cut < wire.length; cut += 1) {
      const reply = await client.send(post(server.url))
      expect(reply.status).toBe(200)
      expect(await readAll(reply)).toBe('data: a\n\nb')
    }
    expect(server.connections).toHaveLength(1)
  })

  test('may trickle in byte by byte', async () => {
    const wire = `${chunkedHead()}${chunk('hello')}${LAST_CHUNK}`
    const server = serve(async (connection) => {
      for (const byte of wire) {
        connection.send(byte)
        await Bun.sleep(0)
      }
    })

    expect(await readAll(await clientWith().send(post(server.url)))).toBe('hello')
  })

  test('without length ends with the connection', async () => {
    const server = serve((connection) => {
      connection.send('HTTP/1.0 200 OK\r\n\r\nhello')
      setTimeout(() => {
        connection.send(' world')
        connection.end()
      }, 5)
    })
    const client = clientWith()

    expect(await readAll(await client.send(post(server.url)))).toBe('hello world')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test.each([
    ['HTTP/1.1 204 No Content\r\n\r\n', ''],
    ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', ''],
  ])('%p has no body and leaves the connection free', async (wire, body) => {
    const server = serve((connection) => connection.send(wire))
    const client = clientWith()

    expect(await readAll(await client.send(post(server.url)))).toBe(body)
    expect(client.stats()).toEqual({ open: 1, idle: 1 })
  })

  test.each([
    ['SSH-2.0-OpenSSH_9.2\r\n'],
    ['HTTP/1.1 OK\r\n\r\n'],
    ['HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`],
  ])('that is not HTTP as we know it is a protocol failure: %.20p', async (wire) => {
    const server = serve((connection) => connection.send(wire))
    const client = clientWith()

    expect((await failureOf(client.send(post(server.url)))).class).toBe('protocol')
    await until(() => server.open() === 0, 'the connection is closed')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test.each([
    ['in the head', 'HTTP/1.1 200 OK\r\ncontent-le', 0],
    ['in a body with a length', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello', 5],
    ['in a chunked body', `${chunkedHead()}${chunk('hello')}`, 5],
  ])('that breaks off %s is a reset, after what had arrived', async (_where, wire, bytes) => {
    for (const way of ['end', 'reset'] as const) {
      const server = serve((connection) => {
        connection.send(wire)
        setTimeout(() => connection[way](), 10)
      })

      let text = ''
      const failure = await failureOf(
        (async () => {
          const reply = await clientWith().send(post(server.url))
          for (let piece = await reply.read(); piece; piece = await reply.read()) text += Buffer.from(piece).toString()
        })(),
      )

      expect(text).toBe('hello'.slice(0, bytes))
      expect(failure).toMatchObject({ class: 'reset', bytes })
    }
  })

  test('keeps on failing when it is read again', async () => {
    const server = serve((connection) => connection.send(`${chunkedHead()}zz\r\n`))

    const reply = await clientWith().send(post(server.url))

    expect((await failureOf(reply.read())).class).toBe('protocol')
    expect((await failureOf(reply.read())).class).toBe('protocol')
  })
})

describe('what is here of an answer', () => {
  test('is given without waiting, to its end', async () => {
    const server = serve((connection) => connection.send(answer('{"a":1}')))

    const reply = await clientWith().send(post(server.url))

    expect(Buffer.from(reply.ready?.() as Uint8Array).toString()).toBe('{"a":1}')
    expect(reply.ready?.()).toBe('end')
    expect(await reply.read()).toBeUndefined()
  })

  test('is nothing while more is to come', async () => {
    let connection: RawConnection | undefined
    const server = serve((given) => {
      connection = given
      given.send(chunkedHead() + chunk('one'))
    })
    const reply = await clientWith().send(post(server.url))
    await reply.read()

    expect(reply.ready?.()).toBeUndefined()
    connection?.send(chunk('two') + LAST_CHUNK)

    expect(await readAll(reply)).toBe('two')
    expect(reply.ready?.()).toBe('end')
  })

  test('is no end when it broke off', async () => {
    const server = serve((connection) => connection.send(`${chunkedHead()}zz\r\n`))
    const reply = await clientWith().send(post(server.url))
    await failureOf(reply.read())

    expect(reply.ready?.()).toBeUndefined()
  })
})

describe('a sender', () => {
  test('hears before each request whether its connection is a kept one', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith()
    const heard: [boolean, number][] = []
    const sender = { sending: (_: unknown, isReused: boolean) => void heard.push([isReused, server.requests.length]) }

    for (let i = 0; i < 2; i += 1) await readAll(await client.send(post(server.url, { sender })))

    expect(heard).toEqual([
      [false, 0],
      [true, 1],
    ])
  })

  test('can close the answer before its head is there', async () => {
    const server = serve(() => {})
    const begun: Pick<UpstreamReply, 'close'>[] = []
    const sender = { sending: (given: Pick<UpstreamReply, 'close'>) => void begun.push(given) }
    const sending = failureOf(clientWith().send(post(server.url, { sender })))
    await until(() => server.requests.length === 1, 'the request arrived')

    begun[0]?.close()

    expect((await sending).class).toBe('reset')
    await until(() => server.open() === 0, 'the node sees it', 1_000)
  })

  test('that closes at once sends nothing', async () => {
    const server = serve(() => {})
    const sender = { sending: (given: Pick<UpstreamReply, 'close'>) => given.close() }

    await failureOf(clientWith().send(post(server.url, { sender })))

    await until(() => server.connections.length === 1 && server.open() === 0, 'the connection is closed')
    expect(server.requests).toHaveLength(0)
  })
})

describe('connections', () => {
  test('are reused one request after the other', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith()

    for (let i = 0; i < 20; i += 1) await readAll(await client.send(post(server.url)))

    expect(server.connections).toHaveLength(1)
    expect(client.stats()).toEqual({ open: 1, idle: 1 })
  })

  test('carry one request at a time', async () => {
    const server = serve((connection) => setTimeout(() => connection.send(answer('{}')), 20))
    const client = clientWith()

    await Promise.all(Array.from({ length: 5 }, async () => readAll(await client.send(post(server.url)))))

    expect(server.connections).toHaveLength(5)
    expect(server.connections.every((connection) => connection.requests === 1)).toBe(true)
    expect(client.stats()).toEqual({ open: 5, idle: 5 })
  })

  test('that idled too long are closed, not reused', async () => {
    let now = 1_000
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith({ idleMs: 5_000, now: () => now })

    await readAll(await client.send(post(server.url)))
    now += 5_000
    await readAll(await client.send(post(server.url)))
    expect(server.connections).toHaveLength(1)
    now += 5_001
    await readAll(await client.send(post(server.url)))

    expect(server.connections).toHaveLength(2)
    await until(() => server.connections[0]?.closed === true, 'the old connection is closed')
  })

  test('are given up before the time that the node promised is over', async () => {
    let now = 1_000
    const reply = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: 0\r\n\r\n'
    const server = serve((connection) => connection.send(reply))
    const client = clientWith({ idleMs: 60_000, now: () => now })

    await client.send(post(server.url))
    now += 4_500
    await client.send(post(server.url))

    expect(server.connections).toHaveLength(2)
  })

  test.each([
    ['the node says close', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'],
    ['the node sends more than its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n'],
  ])('are not reused when %s', async (_when, wire) => {
    const server = serve((connection) => connection.send(wire))
    const client = clientWith()

    await client.send(post(server.url))
    await client.send(post(server.url))

    expect(server.connections).toHaveLength(2)
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('that idled too long are closed even when nobody asks', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith({ idleMs: 20 })

    await readAll(await client.send(post(server.url)))

    await until(() => server.open() === 0, 'the idle connection is closed')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('are not reused when the answer overtook its request', async () => {
    const listener = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.pause()
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno')
        },
      },
    })
    stopLater(() => listener.stop(true))
    const client = clientWith()

    const body = new Uint8Array(30_000_000)
    const reply = await client.send(post(`http://127.0.0.1:${listener.port}`, { body }))

    expect(reply.status).toBe(413)
    expect(await readAll(reply)).toBe('no')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('are reused although the last answer still waits to be read', async () => {
    // Just over the buffer limit, so that the socket is paused by the very bytes that complete the answer.
    const long = answer('x'.repeat(262_500))
    const server = serve((connection) => connection.send(long))
    const client = clientWith()
    const unread = await client.send(post(server.url))
    await until(() => client.stats().idle === 1, 'the whole answer is here')

    const next = await client.send(post(server.url))

    expect(server.connections).toHaveLength(1)
    expect((await readAll(next)).length).toBe(262_500)
    expect((await readAll(unread)).length).toBe(262_500)
  })

  test.each([
    ['closed', (connection: RawConnection) => connection.end()],
    ['reset', (connection: RawConnection) => connection.reset()],
    ['spoken on', (connection: RawConnection) => connection.send('HTTP/1.1 408 Timeout\r\n\r\n')],
  ])('that were %s while idle are not reused', async (_how, disturb) => {
    const server = serve((connection) => connection.send(answer('{}')))
    const client = clientWith()
    await readAll(await client.send(post(server.url)))

    disturb(server.connections[0] as RawConnection)
    await until(() => client.stats().open === 0, 'the client noticed')
    await readAll(await client.send(post(server.url)))

    expect(server.connections).toHaveLength(2)
  })

  test('beyond the idle limit are closed, the oldest first', async () => {
    const server = serve((connection) => setTimeout(() => connection.send(answer('{}')), 5 * (connection.id + 1)))
    const client = clientWith({ maxIdlePerOrigin: 2 })

    await Promise.all(Array.from({ length: 3 }, async () => readAll(await client.send(post(server.url)))))

    expect(client.stats()).toEqual({ open: 2, idle: 2 })
    await until(() => server.connections[0]?.closed === true, 'the first to idle is closed')
  })

  test('are closed on demand, by origin', async () => {
    const one = serve((connection) => connection.send(answer('{}')))
    const two = serve((connection) => connection.send(answer('{}')))
    const client = clientWith()
    for (const server of [one, two]) await readAll(await client.send(post(server.url)))

    client.close(one.url)

    expect(client.stats()).toEqual({ open: 1, idle: 1 })
    await until(() => one.open() === 0, 'the connection of the first is closed')
    expect(two.open()).toBe(1)
  })

  test('BL-W02: 700 streams to one node run at once', async () => {
    const server = serve((connection) => connection.send(chunkedHead() + chunk('data: 1\n\n')))
    const client = clientWith()

    const replies: UpstreamReply[] = []
    // In waves, because the kernel's own queue of unaccepted connections is shorter than 700.
    for (let wave = 0; wave < 7; wave += 1) {
      replies.push(...(await Promise.all(Array.from({ length: 100 }, () => client.send(post(server.url))))))
    }
    const first = await Promise.all(replies.map((reply) => reply.read()))

    expect(first.every((piece) => piece?.length === 9)).toBe(true)
    expect(client.stats().open).toBe(700)
    for (const reply of replies) reply.close()
    await until(() => server.open() === 0, 'all are closed')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })
})

describe('never sent twice', () => {
  test('BL-V02: a reused connection that is reset fails the request, and says that it was reused', async () => {
    const server = serve((connection, request) => {
      if (request.number === 1) connection.send(answer('{}'))
      else connection.reset()
    })
    const client = clientWith()
    await readAll(await client.send(post(server.url)))

    const failure = await failureOf(client.send(post(server.url)))

    expect(failure.class).toBe('reset')
    expect(failure.message).toContain('kept-alive')
    await Bun.sleep(20)
    expect(server.requests).toHaveLength(2)
  })

  test('a reused connection that is reset after the request had reached the engine is no stale one', async () => {
    let now = 1_000
    const server = serve((connection, request) => {
      if (request.number === 1) return connection.send(answer('{}'))
      now += 1_000
      connection.reset()
    })
    const client = clientWith({ now: () => now })
    await readAll(await client.send(post(server.url)))

    const failure = await failureOf(client.send(post(server.url)))

    expect(failure).toMatchObject({ class: 'reset', elapsedMs: 1_000 })
    expect(failure.stale).toBeUndefined()
    expect(failure.message).not.toContain('kept-alive')
  })

  test('BL-V02: of a node that hangs up after each stream only the first request meets a dead connection', async () => {
    // The next request crosses the node's farewell.
    const server = serve((connection) => {
      if (connection.requests > 1) connection.end()
      else connection.send(chunkedHead() + chunk('data: 1\n\n') + LAST_CHUNK)
    })
    const client = clientWith()
    const outcomes: string[] = []

    for (let round = 0; round < 20; round += 1) {
      outcomes.push(
        await client
          .send(post(server.url))
          .then(readAll, (fault: NodeFault) => (fault.failure.stale ? 'stale' : 'lost')),
      )
    }

    const well = 'data: 1\n\n'
    expect(outcomes).toEqual([well, 'stale', ...Array(18).fill(well)])
  })

  test('a connection of such a node that outlived its answer is used again', async () => {
    let now = 1_000
    const server = serve((connection, request) => {
      connection.send(answer('{}'))
      if (request.number === 1) connection.end()
    })
    const client = clientWith({ now: () => now })
    const ask = async () => readAll(await client.send(post(server.url)))
    await ask()
    await until(() => client.stats().open === 0, 'the node hung up')

    await ask()
    now += 100
    await ask()
    now += 1_000
    await ask()

    expect(server.connections.map(({ requests }) => requests)).toEqual([1, 1, 2])
  })

  test('BL-V01: after one half-open connection the next request takes a fresh one', async () => {
    const swallowed = new Set<number>()
    const server = serve((connection) => {
      if (!swallowed.has(connection.id)) connection.send(answer('{}'))
    })
    const client = clientWith()
    await Promise.all([1, 2].map(async () => readAll(await client.send(post(server.url)))))
    for (const connection of server.connections) swallowed.add(connection.id)

    let giveUp = (_isOverdue: boolean): void => {}
    const sender = {
      sending(given: Pick<UpstreamReply, 'close'>) {
        giveUp = (isOverdue) => given.close(isOverdue)
      },
    }
    const hanging = failureOf(client.send(post(server.url, { sender })))
    await until(() => server.requests.length === 3, 'the request was swallowed')
    giveUp(true)
    await hanging

    expect(await readAll(await client.send(post(server.url)))).toBe('{}')
    expect(server.connections).toHaveLength(3)
  })

  test.each(['signal', 'sender'] as const)(
    'one who leaves before the first byte takes only that connection along (%s)',
    async (how) => {
      const server = serve((connection, request) => {
        if (request.number !== 4) setTimeout(() => connection.send(answer('{}')), 10)
      })
      const client = clientWith()
      await Promise.all([1, 2, 3].map(async () => readAll(await client.send(post(server.url)))))
      expect(client.stats()).toEqual({ open: 3, idle: 3 })

      const attempt = new AbortController()
      const sender = {
        sending: (given: Pick<UpstreamReply, 'close'>) => attempt.signal.addEventListener('abort', () => given.close()),
      }
      const hanging = failureOf(
        client.send(post(server.url, how === 'sender' ? { sender } : { signal: attempt.signal })),
      )
      await until(() => server.requests.length === 4, 'the request arrived')
      attempt.abort()
      await hanging

      expect(client.stats()).toEqual({ open: 2, idle: 2 })
      await Promise.all([1, 2].map(async () => readAll(await client.send(post(server.url)))))
      expect(server.connections).toHaveLength(3)
    },
  )
})

describe('abort', () => {
  test('BL-D05: before the answer closes the connection at once', async () => {
    const server = serve(() => {})
    const attempt = new AbortController()

    const sending = failureOf(clientWith().send(post(server.url, { signal: attempt.signal })))
    await until(() => server.requests.length === 1, 'the request arrived')
    attempt.abort()

    await sending
    await until(() => server.open() === 0, 'the node sees it', 1_000)
  })

  test('BL-D01 BL-D03: while the body is read closes the connection at once', async () => {
    const server = serve((connection) => connection.send(chunkedHead() + chunk('data: 1\n\n')))
    const attempt = new AbortController()
    const client = clientWith()
    const reply = await client.send(post(server.url, { signal: attempt.signal }))
    await reply.read()

    const reading = failureOf(reply.read())
    attempt.abort()

    await reading
    await until(() => server.open() === 0, 'the node sees it', 1_000)
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('while the request is written closes the connection', async () => {
    const listener = Bun.listen<{ closed: boolean }>({
      hostname: '127.0.0.1',
      port: 0,
      data: { closed: false },
      socket: {
        open: (socket) => void socket.pause(),
        data() {},
      },
    })
    stopLater(() => listener.stop(true))
    const attempt = new AbortController()
    const client = clientWith()

    const body = new Uint8Array(30_000_000)
    const sending = failureOf(client.send(post(`http://127.0.0.1:${listener.port}`, { body, signal: attempt.signal })))
    await until(() => client.stats().open === 1, 'the connection is up')
    attempt.abort()

    await sending
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('before the connection is up leaves none behind', async () => {
    const server = serve(() => {})
    const attempt = new AbortController()
    const client = clientWith()

    const sending = failureOf(client.send(post(server.url, { signal: attempt.signal })))
    attempt.abort()

    await sending
    await until(() => server.connections[0]?.closed === true, 'the connection came up and was closed')
    expect(server.requests).toHaveLength(0)
    expect(client.stats().open).toBe(0)
  })

  test('during the TLS handshake does not wait for its deadline', async () => {
    const silent = serve(() => {})
    const attempt = new AbortController()
    const client = clientWith()

    const url = silent.url.replace('http:', 'https:')
    const sending = failureOf(client.send(post(url, { signal: attempt.signal, connectTimeoutMs: 60_000 })))
    await until(() => silent.connections.length === 1, 'TCP is up')
    attempt.abort()

    await sending
    await until(() => silent.open() === 0, 'the connection is closed')
  })

  test('after the whole answer arrived does not harm the connection', async () => {
    const server = serve((connection) => connection.send(answer('{}')))
    const attempt = new AbortController()
    const client = clientWith()
    const reply = await client.send(post(server.url, { signal: attempt.signal }))
    await readAll(reply)

    attempt.abort()
    reply.close()
    await readAll(await client.send(post(server.url)))

    expect(server.connections).toHaveLength(1)
  })

  test('of a signal that is aborted already sends nothing', async () => {
    const server = serve(() => {})

    await failureOf(clientWith().send(post(server.url, { signal: AbortSignal.abort() })))

    expect(server.connections).toHaveLength(0)
  })
})

describe('back-pressure', () => {
  test('nothing is read from the socket beyond a small buffer until it is asked for', async () => {
    const total = 64 * 1024 * 1024
    const block = new Uint8Array(1024 * 1024)
    let handed = 0
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () =>
        new Response(
          new ReadableStream<Uint8Array>({
            pull(controller) {
              handed += block.length
              controller.enqueue(block)
              if (handed >= total) controller.close()
            },
          }),
        ),
    })
    stopLater(() => void server.stop(true))

    const reply = await clientWith().send(post(`http://127.0.0.1:${server.port}/`))
    await Bun.sleep(100)
    expect(handed).toBeLessThan(24 * 1024 * 1024)

    let read = 0
    for (let piece = await reply.read(); piece; piece = await reply.read()) read += piece.length
    expect(read).toBe(total)
  })
})

describe('connecting', () => {
  test('refused is a failure of class connect', async () => {
    const server = serve(() => {})
    server.stop()
    const client = clientWith()

    expect((await failureOf(client.send(post(server.url)))).class).toBe('connect')
    expect(client.stats()).toEqual({ open: 0, idle: 0 })
  })

  test('to a name that does not resolve is a failure of class dns', async () => {
    expect((await failureOf(clientWith().send(post('http://no-such-host.invalid/')))).class).toBe('dns')
  })

  test('has a deadline that includes the TLS handshake', async () => {
    const silent = serve(() => {})

    const failure = await failureOf(
      clientWith().send(post(silent.url.replace('http:', 'https:'), { connectTimeoutMs: 40 })),
    )

    expect(failure.class).toBe('connect_timeout')
    expect(failure.elapsedMs).toBeGreaterThanOrEqual(38)
    expect(failure.elapsedMs).toBeLessThan(2_000)
    await until(() => silent.open() === 0, 'the abandoned connection is closed')
  })
})

describe('TLS', () => {
  // Self-signed for localhost and 127.0.0.1, valid for a hundred years, good for nothing but these tests.
  const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUQKpO/3ob9gAa4Ll68wIPdZ9WhkEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDA3NTc1MVoYDzIxMjYxMTA2
MDc1NzUxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATRFfDyc3o/k3OTEyf51r6ULbCtbyhcIgd063+v6uFrXGbCo+0kvIVu
icvzOY+4wE4mp3GjwE3ZVI0kCjhWq/lpo28wbTAdBgNVHQ4EFgQUdML2TTj9X7H2
xT3EFogLeiVOFXswHwYDVR0jBBgwFoAUdML2TTj9X7H2xT3EFogLeiVOFXswDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgdggKEX0E0LIMeBUxaVMdIY7EJLk0+cykUUeKIkpLyfwCIQDK
GIRWeT2W0dTDJ9kLRn3VmYsheSxnPxGRcoGlggPvpg==
-----END CERTIFICATE-----
`
  const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWpydRaCqRiAhw8pK
vEnGSkLMevzitX2Pw3awYYc/L4uhRANCAATRFfDyc3o/k3OTEyf51r6ULbCtbyhc
Igd063+v6uFrXGbCo+0kvIVuicvzOY+4wE4mp3GjwE3ZVI0kCjhWq/lp
-----END PRIVATE KEY-----
`

  test('with a certificate that is trusted carries requests and keeps the connection', async () => {
    const server = serve((connection) => connection.send(answer('{"a":1}')), { tls: { cert, key } })
    const client = clientWith({ ca: cert })

    expect(await readAll(await client.send(post(server.url)))).toBe('{"a":1}')
    expect(await readAll(await client.send(post(server.url)))).toBe('{"a":1}')

    expect(server.connections).toHaveLength(1)
  })

  test('with a certificate that nobody vouches for fails before the request is sent', async () => {
    const server = serve((connection) => connection.send(answer('{}')), { tls: { cert, key } })

    const failure = await failureOf(clientWith().send(post(server.url)))

    expect(failure.class).toBe('tls')
    expect(server.requests).toHaveLength(0)
  })

  test('with a node that speaks plain HTTP fails as such', async () => {
    const server = serve(() => {}, { onOpen: (connection) => connection.send('HTTP/1.1 400 Bad Request\r\n\r\n') })

    expect((await failureOf(clientWith().send(post(server.url.replace('http:', 'https:'))))).class).toBe('tls')
  })
})
