import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { NodeFault } from '../ports/node-gateway'
import { join, readErrorBody } from './relay-refusal'
import { maybe } from './schema'
import { pause } from './until'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from './upstream'

/** How often a job is asked for. */
const POLL_MS = 400
/** For telling the node that nobody waits any more. */
const CANCEL_TIMEOUT_MS = 2_000

const Begun = Type.Object({ id: Type.String() })
const Job = Type.Object({
  status: Type.String(),
  result: maybe(Type.Unknown()),
  error: maybe(Type.Unknown()),
})

const nothing = new Uint8Array()

const parse = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}

const fault = (message: string): NodeFault => new NodeFault({ class: 'protocol', message, bytes: 0, elapsedMs: 0 })

/** An answer that is here already. */
const whole = (status: number, body: unknown): UpstreamReply => {
  let rest: Uint8Array | undefined = Buffer.from(JSON.stringify(body))
  return {
    status,
    headers: { 'content-type': 'application/json' },
    contentLength: rest.length,
    read: async () => {
      const piece = rest
      rest = undefined
      return piece
    },
    close: () => {},
  }
}

const readAll = async (reply: UpstreamReply): Promise<Uint8Array> => {
  const pieces: Uint8Array[] = []
  for (let piece = await reply.read(); piece; piece = await reply.read()) pieces.push(piece)
  return join(pieces)
}

/**
 * Submits a job and waits for its end: on its other endpoints the server would go on drawing for a client that has left.
 * Aborting the signal cancels the job on the node.
 */
export const runJob = async (request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply> => {
  const { signal } = request
  const reply = await upstream.send(request)
  if (reply.status !== 202 && reply.status !== 200) return reply
  const begun = parse(await readErrorBody(reply))
  if (!Value.Check(Begun, begun)) throw fault('the node took the job without telling its id')
  const root = request.url.slice(0, request.url.lastIndexOf('/'))
  const job = `${root}/jobs/${encodeURIComponent(begun.id)}`
  const { headers, connectTimeoutMs } = request
  const call = (method: 'GET' | 'POST', url: string, callSignal: AbortSignal): Promise<UpstreamReply> =>
    upstream.send({ url, method, headers, body: nothing, connectTimeoutMs, signal: callSignal })

  try {
    for (;;) {
      await pause(POLL_MS, signal)
      if (signal.aborted) throw fault('the request was cancelled')
      const answer = await call('GET', job, signal)
      if (answer.status !== 200) return answer
      const state = parse(await readAll(answer))
      if (!Value.Check(Job, state)) throw fault('the node told nothing of the job')
      if (state.status === 'completed') return whole(200, state.result)
      if (state.status === 'failed' || state.status === 'cancelled')
        return whole(500, { error: state.error ?? `the job was ${state.status}` })
    }
  } catch (error) {
    if (signal.aborted) {
      // Nobody is left to hear what becomes of this call.
      void call('POST', `${job}/cancel`, AbortSignal.timeout(CANCEL_TIMEOUT_MS)).then(readAll, () => {})
    }
    throw error
  }
}
