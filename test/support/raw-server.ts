import type { Socket } from 'bun'

/** One client connection of a raw server, and what may be done to it. */
export interface RawConnection {
  readonly id: number
  /** Everything that came in, as latin1. */
  received: string
  /** Requests completed on this connection. */
  requests: number
  closed: boolean
  send(data: string | Uint8Array): void
  /** FIN after what was sent. */
  end(): void
  /** RST. */
  reset(): void
}

/** A request as it stood on the wire. */
export interface RawRequest {
  readonly head: string
  readonly body: string
  /** Count over all connections, from 1. */
  readonly number: number
}

export interface RawServer {
  readonly url: string
  readonly port: number
  readonly connections: RawConnection[]
  readonly requests: RawRequest[]
  open(): number
  stop(): void
}

export interface RawServerOptions {
  readonly tls?: { readonly key: string; readonly cert: string }
  onOpen?(connection: RawConnection): void
}

interface State {
  connection: RawConnection
  queue: Uint8Array[]
  ending: boolean
  unparsed: string
}

/** A TCP server that says exactly what it is told, to each whole HTTP/1.1 request that it hears. */
export const startRawServer = (
  onRequest: (connection: RawConnection, request: RawRequest) => void,
  options: RawServerOptions = {},
): RawServer => {
  const connections: RawConnection[] = []
  const requests: RawRequest[] = []

  const flush = (socket: Socket<State>): void => {
    const { queue } = socket.data
    while (queue[0]) {
      const written = Math.max(0, socket.write(queue[0]))
      if (written < queue[0].length) {
        queue[0] = queue[0].subarray(written)
        return
      }
      queue.shift()
    }
    if (socket.data.ending) socket.end()
  }

  const connectionOf = (socket: Socket<State>): RawConnection => ({
    id: connections.length,
    received: '',
    requests: 0,
    closed: false,
    send(data) {
      socket.data.queue.push(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
      flush(socket)
    },
    end() {
      socket.data.ending = true
      flush(socket)
    },
    reset: () => socket.terminate(),
  })

  const listener = Bun.listen<State>({
    hostname: '127.0.0.1',
    port: 0,
    ...(options.tls ? { tls: options.tls } : {}),
    socket: {
      open(socket) {
        const connection = connectionOf(socket)
        socket.data = { connection, queue: [], ending: false, unparsed: '' }
        connections.push(connection)
        options.onOpen?.(connection)
      },
      data(socket, bytes) {
        const state = socket.data
        const text = bytes.toString('latin1')
        state.connection.received += text
        state.unparsed += text
        for (let parsed = takeRequest(state.unparsed); parsed; parsed = takeRequest(state.unparsed)) {
          state.unparsed = parsed.rest
          state.connection.requests += 1
          const request = { head: parsed.head, body: parsed.body, number: requests.length + 1 }
          requests.push(request)
          onRequest(state.connection, request)
        }
      },
      drain: flush,
      close(socket) {
        socket.data.connection.closed = true
      },
      error() {},
    },
  })

  return {
    url: `http${options.tls ? 's' : ''}://127.0.0.1:${listener.port}`,
    port: listener.port,
    connections,
    requests,
    open: () => connections.filter((connection) => !connection.closed).length,
    stop: () => listener.stop(true),
  }
}

/** Starts raw servers and hands over how each is stopped. */
export const rawServers =
  (stopLater: (stop: () => void) => void) =>
  (...options: Parameters<typeof startRawServer>): RawServer => {
    const server = startRawServer(...options)
    stopLater(() => server.stop())
    return server
  }

const takeRequest = (text: string): { head: string; body: string; rest: string } | undefined => {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = text.slice(0, end)
  const length = Number(/\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
  const bodyAt = end + 4
  if (text.length < bodyAt + length) return undefined
  return { head, body: text.slice(bodyAt, bodyAt + length), rest: text.slice(bodyAt + length) }
}

/** A whole answer with a content length. */
export const answer = (body: string, head = 'HTTP/1.1 200 OK', type = 'application/json'): string =>
  `${head}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** The head of a chunked answer. */
export const chunkedHead = (type = 'text/event-stream', status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`

export const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

export const LAST_CHUNK = '0\r\n\r\n'

/** Waits until the condition holds; throws with the description after the limit. */
export const until = async (condition: () => boolean, what: string, limitMs = 2_000): Promise<void> => {
  const deadline = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await Bun.sleep(2)
  }
}
