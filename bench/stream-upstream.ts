/** A node that streams: every chunk carries the time at which it was written, in this process's clock. */
import type { Socket } from 'bun'
import { MODEL, modelsBody } from './exchange'

export const CHUNKS_PER_SECOND = 50
const PERIOD_MS = 1000 / CHUNKS_PER_SECOND
/** Streams are spread over the period, one group a millisecond: nodes do not speak in chorus. */
const GROUPS = PERIOD_MS

/** Stands before the stamp, which is `STAMP_DIGITS` of microseconds since the process began. */
export const STAMP_MARK = 'at='
export const STAMP_DIGITS = 12

interface State {
  head: string
  stream: boolean
}

const httpOk = (type: string, rest: string): string => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${rest}`

const stampedChunk = (): Buffer => {
  const stamp = String(Math.round(performance.now() * 1000)).padStart(STAMP_DIGITS, '0')
  const delta = { content: ` ${STAMP_MARK}${stamp}` }
  const event = {
    id: 'chatcmpl-0',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: MODEL,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
  }
  const data = `data: ${JSON.stringify(event)}\n\n`
  return Buffer.from(`${data.length.toString(16)}\r\n${data}\r\n`)
}

export interface StreamUpstream {
  readonly url: string
  readonly port: number
  readonly streams: number
  stop(): void
}

/** Answers every chat with an endless stream and everything else with the list of models. */
export const startStreamUpstream = (): StreamUpstream => {
  const groups = Array.from({ length: GROUPS }, () => new Set<Socket<State>>())
  let next = 0
  let streams = 0

  const answer = (socket: Socket<State>): void => {
    const isChat = socket.data.head.startsWith('POST')
    socket.data.head = ''
    if (!isChat) {
      const body = modelsBody(MODEL)
      socket.write(`${httpOk('application/json', `content-length: ${body.length}\r\n`)}\r\n${body}`)
      return
    }
    socket.write(`${httpOk('text/event-stream', 'transfer-encoding: chunked\r\n')}\r\n`)
    socket.data.stream = true
    streams += 1
    groups[next++ % GROUPS]?.add(socket)
  }

  const isWhole = (text: string): boolean => {
    const end = text.indexOf('\r\n\r\n')
    const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0)
    return end >= 0 && text.length >= end + 4 + length
  }

  const gone = (socket: Socket<State>): void => {
    if (socket.data.stream) streams -= 1
    socket.data.stream = false
    for (const group of groups) group.delete(socket)
  }

  const server = Bun.listen<State>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { head: '', stream: false }
        socket.setNoDelay(true)
      },
      data(socket, bytes) {
        socket.data.head += bytes.toString('latin1')
        if (isWhole(socket.data.head)) answer(socket)
      },
      close: gone,
      error: gone,
    },
  })

  let spoken = Math.floor(performance.now())
  const timer = setInterval(() => {
    for (const now = Math.floor(performance.now()); spoken < now; ) {
      spoken += 1
      const group = groups[spoken % GROUPS]
      if (group === undefined || group.size === 0) continue
      const chunk = stampedChunk()
      for (const socket of group) socket.write(chunk)
    }
  }, 1)

  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    get streams() {
      return streams
    },
    stop: () => {
      clearInterval(timer)
      server.stop(true)
    },
  }
}
