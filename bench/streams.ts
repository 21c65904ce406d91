/** Many streams at once through one server: how late chunks come, and what one costs. */
import type { Socket } from 'bun'
import { type Asking, asOpenAi } from './exchange'
import type { Server } from './servers'
import { quantile } from './statistics'
import { CHUNKS_PER_SECOND, STAMP_DIGITS, STAMP_MARK } from './stream-upstream'

export interface Streamed {
  /** CPU of the server per chunk, in microseconds. */
  readonly cpuUs: number
  /** From the node's write to our read, in microseconds. */
  readonly p50: number
  readonly p99: number
  /** Chunks that arrived, of those that were due. */
  readonly share: number
  /** Chunks per read: above 1 the load core was too slow, or the server joined them. */
  readonly perRead: number
  readonly rssMb: number
}

/** Streams begin a few at a time: a thousand connections at once measure the listen queue. */
const BEGIN_AT_ONCE = 50
const BEGIN_PAUSE_MS = 30
/** Until all streams run evenly. */
const SETTLE_MS = 1_500

interface Tally {
  on: boolean
  chunks: number
  reads: number
  readonly latencies: number[]
}

const readStamps = (bytes: Buffer, tally: Tally): void => {
  const now = performance.now() * 1000
  let found = 0
  for (let at = bytes.indexOf(STAMP_MARK); at >= 0; at = bytes.indexOf(STAMP_MARK, at + STAMP_DIGITS)) {
    const from = at + STAMP_MARK.length
    tally.latencies.push(now - Number(bytes.toString('latin1', from, from + STAMP_DIGITS)))
    found += 1
  }
  if (found === 0) return
  tally.chunks += found
  tally.reads += 1
}

const open = async (server: Server, { path, body }: Asking, tally: Tally): Promise<Socket> => {
  const { hostname, port, host } = new URL(server.url)
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  return Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open(socket) {
        socket.setNoDelay(true)
        socket.write(head + body)
      },
      data(_socket, bytes) {
        if (tally.on) readStamps(bytes, tally)
      },
    },
  })
}

/** Keeps `count` streams open through the server for so long and measures in the middle. */
export const measureStreams = async (
  server: Server,
  count: number,
  seconds: number,
  asking: Asking = asOpenAi,
): Promise<Streamed> => {
  const tally: Tally = { on: false, chunks: 0, reads: 0, latencies: [] }
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const more = Math.min(BEGIN_AT_ONCE, count - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: more }, () => open(server, asking, tally)))))
    await Bun.sleep(BEGIN_PAUSE_MS)
  }
  await Bun.sleep(SETTLE_MS)

  const cpuBefore = server.program?.cpuSeconds() ?? 0
  const startedAt = performance.now()
  tally.on = true
  await Bun.sleep(seconds * 1000)
  tally.on = false
  const elapsed = (performance.now() - startedAt) / 1000
  const cpuSeconds = (server.program?.cpuSeconds() ?? 0) - cpuBefore
  const rssMb = server.program?.rssMb() ?? 0
  for (const socket of sockets) socket.terminate()
  await Bun.sleep(SETTLE_MS / 3)

  return {
    cpuUs: (cpuSeconds * 1e6) / tally.chunks,
    p50: quantile(tally.latencies, 0.5),
    p99: quantile(tally.latencies, 0.99),
    share: tally.chunks / (count * CHUNKS_PER_SECOND * elapsed),
    perRead: tally.chunks / tally.reads,
    rssMb,
  }
}
