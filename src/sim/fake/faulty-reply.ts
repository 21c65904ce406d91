import type { Reply } from './connection'
import type { Turn } from './turn'

/** An error as an event of the stream, in the framing of the path. */
const errorEvent = (path: string, message: string): string => {
  if (path.startsWith('/api/')) return `${JSON.stringify({ error: message })}\n`
  const error = { message, type: 'server_error', code: 500 }
  return path === '/v1/messages'
    ? `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
    : `data: ${JSON.stringify({ error })}\n\n`
}

/** A reply to which the faults of its request happen: cut, truncated, silent for a while, mislabelled. */
export const withReplyFaults = (turn: Turn, reply: Reply): Reply => {
  const cut = turn.fault('cut')
  const truncate = turn.fault('truncate')
  const gap = turn.fault('gap')
  const error = turn.fault('body_error')
  const padding = turn.fault('oversized_header')
  const extra = {
    ...(turn.fault('gzip_label') ? { 'content-encoding': 'gzip' } : {}),
    ...(padding ? { 'x-padding': 'a'.repeat(padding.bytes) } : {}),
  }
  const stopping = cut ?? truncate ?? error
  const limit = stopping ? (stopping.afterChunks ?? 0) : Number.POSITIVE_INFINITY
  let leave = (): void => {}
  let events = 0
  /** What waits for the end of the gap. */
  let held: (() => void)[] | undefined

  const stop = (): void => {
    if (cut) reply.reset()
    else if (truncate) reply.end(truncate.framing)
    else {
      reply.write([errorEvent(turn.request.path, error?.message ?? 'the engine failed')])
      reply.end()
    }
    leave()
  }

  const silence = (ms: number): void => {
    const mine: (() => void)[] = []
    held = mine
    setTimeout(() => {
      held = undefined
      for (const run of mine) run()
    }, ms)
  }

  const afterGap = (run: () => void): void => {
    if (held) held.push(run)
    else run()
  }

  const writeOne = (event: string | Uint8Array) => {
    if (reply.closed) return
    if (events >= limit) return stop()
    events += 1
    reply.write([event])
    if (gap && events === gap.afterChunks) silence(gap.ms)
  }

  return {
    get closed() {
      return reply.closed
    },
    send(status, headers, body) {
      const bytes = Buffer.from(body)
      const half = bytes.subarray(0, Math.floor(bytes.length / 2))
      if (cut || truncate?.framing === 'fin') {
        const head = `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`
        reply.raw(`${head}${half}`, cut ? 'reset' : 'close')
      } else reply.send(status, { ...headers, ...extra }, truncate ? half : bytes)
    },
    begin(status, headers) {
      reply.begin(status, { ...headers, ...extra })
      if (gap?.afterChunks === 0) silence(gap.ms)
    },
    write(written) {
      if (!gap && events + written.length <= limit) {
        events += written.length
        return reply.write(written)
      }
      for (const event of written) afterGap(() => writeOne(event))
      return reply.write([])
    },
    // A limit beyond the last event still counts: such an answer is never whole.
    end: (framing) => afterGap(() => (stopping ? stop() : reply.end(framing))),
    raw: (bytes, then) => reply.raw(bytes, then),
    reset: () => reply.reset(),
    onClose(run) {
      const before = leave
      leave = () => {
        before()
        run()
      }
      reply.onClose(run)
    },
    onDrain: (run) => reply.onDrain(run),
  }
}
