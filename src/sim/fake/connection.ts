import type { Socket } from 'bun'
import { createRequestParser, type FakeRequest } from './http-parser'

/** Bytes that may wait for the client before `write` asks to pause. */
const HIGH_WATER = 64 * 1024

/** The answer to one request. Calls after the end or after the client left do nothing. */
export interface Reply {
  readonly closed: boolean
  /** A whole answer. */
  send(status: number, headers: Readonly<Record<string, string>>, body: string | Uint8Array): void
  /** The head of a chunked answer. */
  begin(status: number, headers: Readonly<Record<string, string>>): void
  /** Each event is one chunk. False: the client is slow, wait for `onDrain`. */
  write(events: readonly (string | Uint8Array)[]): boolean
  /** `framing` `fin` leaves the last chunk out and closes. */
  end(framing?: 'clean' | 'fin'): void
  /** Bytes as they are, then the end of the connection. */
  raw(bytes: string | Uint8Array, then?: 'close' | 'reset'): void
  /** RST. */
  reset(): void
  /** The client left before the answer was whole. */
  onClose(run: () => void): void
  onDrain(run: () => void): void
}

export interface Connection {
  /** Requests that were answered. */
  served: number
  /** Ignores whatever comes, for ever. */
  deaf: boolean
  data(bytes: Uint8Array): void
  drain(): void
  closed(): void
  reset(): void
}

/** Gives what was written before a reset the time to arrive: a reset throws away what is still on its way. */
const RESET_DELAY_MS = 5

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  404: 'Not Found',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

const toBuffer = (data: string | Uint8Array): Buffer =>
  typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength)

const headOf = (status: number, headers: Readonly<Record<string, string>>): string => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${REASONS[status] ?? 'Status'}\r\n${lines.join('')}date: ${new Date().toUTCString()}\r\n\r\n`
}

/** Writes to a socket that takes only a part at a time. */
const createOutlet = (socket: Socket<unknown>) => {
  const waiting: Buffer[] = []
  let size = 0
  let closing = false

  const flush = (): void => {
    for (let bytes = waiting[0]; bytes; bytes = waiting[0]) {
      const taken = Math.max(0, socket.write(bytes))
      size -= taken
      if (taken < bytes.length) {
        waiting[0] = bytes.subarray(taken)
        return
      }
      waiting.shift()
    }
    if (closing) socket.end()
  }

  return {
    flush,
    push(bytes: Buffer): void {
      waiting.push(bytes)
      size += bytes.length
      if (waiting.length === 1) flush()
    },
    full: () => size > HIGH_WATER,
    close(): void {
      closing = true
      if (size === 0) socket.end()
    },
  }
}

interface Listeners {
  readonly close: (() => void)[]
  readonly drain: (() => void)[]
}

export interface ConnectionOptions {
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  serve(request: FakeRequest, reply: Reply, connection: Connection): void
}

/** One client connection: parses requests, hands them out one after the other, writes the answers. */
export const createConnection = (socket: Socket<unknown>, options: ConnectionOptions): Connection => {
  const parser = createRequestParser()
  const outlet = createOutlet(socket)
  let current: Listeners | undefined
  let gone = false

  const headBytes = (status: number, headers: Readonly<Record<string, string>>): Buffer =>
    Buffer.from(headOf(status, { ...options.headers, ...headers }))

  const open = (request: FakeRequest): Reply => {
    const turn: Listeners = { close: [], drain: [] }
    current = turn
    const isOver = (): boolean => gone || current !== turn
    const keep = request.headers.connection?.toLowerCase() !== 'close'
    const over = (): void => {
      current = undefined
      connection.served += 1
      if (keep) queueMicrotask(pump)
      else outlet.close()
    }
    return {
      get closed() {
        return isOver()
      },
      send(status, headers, body) {
        if (isOver()) return
        const bytes = toBuffer(body)
        outlet.push(headBytes(status, { 'content-length': String(bytes.length), ...headers }))
        if (request.method !== 'HEAD' && bytes.length > 0) outlet.push(bytes)
        over()
      },
      begin(status, headers) {
        if (!isOver()) outlet.push(headBytes(status, { ...headers, 'transfer-encoding': 'chunked' }))
      },
      write(events) {
        if (isOver()) return true
        const parts = events.flatMap((event) => {
          const bytes = toBuffer(event)
          return [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]
        })
        if (parts.length > 0) outlet.push(Buffer.concat(parts))
        return !outlet.full()
      },
      end(framing = 'clean') {
        if (isOver()) return
        if (framing === 'clean') outlet.push(Buffer.from('0\r\n\r\n'))
        else outlet.close()
        over()
      },
      raw(bytes, then = 'close') {
        if (isOver()) return
        outlet.push(toBuffer(bytes))
        if (then === 'reset') return this.reset()
        current = undefined
        outlet.close()
      },
      reset() {
        if (isOver()) return
        current = undefined
        setTimeout(connection.reset, RESET_DELAY_MS)
      },
      onClose: (run) => void turn.close.push(run),
      onDrain: (run) => void turn.drain.push(run),
    }
  }

  const pump = (): void => {
    if (current || gone || connection.deaf) return
    const request = parser.next()
    if (request === 'bad') {
      outlet.push(headBytes(400, { 'content-length': '0', connection: 'close' }))
      outlet.close()
    } else if (request) {
      options.serve(request, open(request), connection)
      pump()
    } else if (parser.wantsContinue()) outlet.push(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'))
  }

  const connection: Connection = {
    served: 0,
    deaf: false,
    data(bytes) {
      if (connection.deaf) return
      parser.push(bytes)
      pump()
    },
    drain() {
      outlet.flush()
      if (!outlet.full()) for (const run of current?.drain ?? []) run()
    },
    closed() {
      gone = true
      const turn = current
      current = undefined
      for (const run of turn?.close ?? []) run()
    },
    reset: () => socket.terminate(),
  }
  return connection
}
