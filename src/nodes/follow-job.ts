import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { NodeFault } from '../ports/node-gateway'
import { join, readErrorBody } from './relay-refusal'
import { maybe } from './schema'
import { pause } from './until'
import type { UpstreamClient, UpstreamReply, UpstreamSend } from './upstream'

/** Each time a job is asked for so much later, up to `lastPollMs`. */
const SLOWER = 1.5
/** Polls in a row that may fail before the node is taken to have lost the job. */
const FAILED_POLLS = 3
/** For telling the node that nobody waits any more. */
const CANCEL_TIMEOUT_MS = 2_000
const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'expired'])

const Job = Type.Object({ id: Type.String(), status: maybe(Type.String()), error: maybe(Type.Unknown()) })
type Job = Static<typeof Job>

/** What tells nothing of how the job stands is no answer: a job that is never over would keep its slot for ever. */
const State = Type.Object({ ...Job.properties, status: Type.String() })

const isFinal = ({ status }: Job): boolean => OVER.has(status ?? '')

const nothing = new Uint8Array()

/** How one API has its jobs. */
export interface JobApi {
  /** The address of a job, from the one at which it was submitted. */
  url(submitted: string, id: string): string
  readonly cancel: { readonly method: 'POST' | 'DELETE'; readonly path: string }
  /** Until the first question and between later ones, in ms. */
  readonly firstPollMs: number
  readonly lastPollMs: number
}

const fault = (message: string): NodeFault => new NodeFault({ class: 'protocol', message, bytes: 0, elapsedMs: 0 })

export const parse = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}

const readAll = async (reply: UpstreamReply): Promise<Uint8Array> => {
  const pieces: Uint8Array[] = []
  for (let piece = await reply.read(); piece; piece = await reply.read()) pieces.push(piece)
  return join(pieces)
}

type Ask = (method: 'GET' | 'POST' | 'DELETE', path: string, signal: AbortSignal) => Promise<UpstreamReply>

/** What the node says of the job now; undefined when it could not be asked. */
const stateOf = async (id: string, ask: Ask, signal: AbortSignal): Promise<Job | undefined> => {
  try {
    const answer = await ask('GET', '', signal)
    const { status } = answer
    const body = parse(await readAll(answer))
    if (status === 404 || status === 410)
      return { id, status: 'failed', error: { code: 'gone', message: 'the node does not know the job any more' } }
    return status === 200 && Value.Check(State, body) ? body : undefined
  } catch (error) {
    if (error instanceof NodeFault) return undefined
    throw error
  }
}

/** A reply that lasts until the job is over. */
const following = (begun: Job, ask: Ask, api: JobApi, request: UpstreamSend): UpstreamReply => {
  const given = new AbortController()
  const signal = AbortSignal.any([request.signal, given.signal])
  let next: Job | undefined = begun
  let isOver = isFinal(begun)
  let pauseMs = api.firstPollMs

  const abandon = (): void => {
    if (isOver) return
    isOver = true
    given.abort()
    if (request.sender?.isLeft) return
    // Nobody is left to hear what becomes of this call.
    void ask(api.cancel.method, api.cancel.path, AbortSignal.timeout(CANCEL_TIMEOUT_MS))
      .then(readAll)
      .catch(() => {})
  }
  request.signal.addEventListener('abort', abandon, { once: true })
  if (request.signal.aborted) abandon()

  const poll = async (): Promise<Job> => {
    for (let failed = 0; failed < FAILED_POLLS; failed += 1) {
      await pause(pauseMs, signal)
      if (signal.aborted) throw fault('the request was cancelled')
      pauseMs = Math.min(pauseMs * SLOWER, api.lastPollMs)
      const state = await stateOf(begun.id, ask, signal)
      if (state !== undefined) return state
    }
    throw fault('the node could not be asked for the job any more')
  }

  return {
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    async read() {
      if (next === undefined && isOver) return undefined
      const state = next ?? (await poll())
      next = undefined
      isOver ||= isFinal(state)
      return Buffer.from(`${JSON.stringify(state)}\n`)
    },
    close: abandon,
  }
}

/**
 * Submits a job and stays with it until it is over, so that its slot is taken for as long as the engine works on it. The
 * reply is what the node says of the job, one JSON document a line, each also a sign of life. Giving up cancels the job,
 * unless its sender leaves it.
 */
export const followJob =
  (api: JobApi) =>
  async (request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply> => {
    const reply = await upstream.send(request)
    if (reply.status < 200 || reply.status > 299) return reply
    const begun = parse(await readErrorBody(reply))
    if (!Value.Check(Job, begun)) throw fault('the node took the job without telling its id')
    const job = api.url(request.url, begun.id)
    const { connectTimeoutMs } = request
    const { 'content-type': _, ...headers } = request.headers
    const ask: Ask = (method, path, signal) =>
      upstream.send({ url: `${job}${path}`, method, headers, body: nothing, connectTimeoutMs, signal })
    return following(begun, ask, api, request)
  }

/** Of servers with OpenAI's `/v1/videos`. */
const followVideo = followJob({
  url: (submitted, id) => `${submitted}/${encodeURIComponent(id)}`,
  cancel: { method: 'DELETE', path: '' },
  firstPollMs: 300,
  lastPollMs: 5_000,
})

/** Sends a request as it is, but stays with a video until it is made. */
export const sendWithVideos = (request: UpstreamSend, upstream: UpstreamClient): Promise<UpstreamReply> =>
  request.method === 'POST' && request.url.endsWith('/v1/videos')
    ? followVideo(request, upstream)
    : upstream.send(request)
