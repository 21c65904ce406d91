import { RouterError } from '../domain/errors'
import type { Outcome } from '../domain/facts'
import type { Json } from '../wire/json/values'
import { isVideoOver } from '../wire/video-states'
import { videoRoute } from '../wire/videos'
import type { ServerDeps } from './deps'
import type { Call } from './route'
import type { Serve } from './routes/inference'
import { requestOf, shown, type Video, type VideoBook, videoOf } from './video-book'

/** Every object of a body with one a line. */
async function* objectsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Json> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as Json
  }
}

/** A call that goes on without its client once that has been answered. */
const detached = (call: Call): { readonly call: Call; readonly client: AbortController; release(): void } => {
  const { request } = call
  const client = new AbortController()
  const left = (): void => client.abort()
  request.signal.addEventListener('abort', left, { once: true })
  if (request.signal.aborted) left()
  return {
    call: {
      id: call.id,
      at: call.at,
      path: call.path,
      ...(call.caller && { caller: call.caller }),
      request: new Request(request, { signal: client.signal }),
      received: () => call.received(),
      hangUp: () => {},
      answered: () => {},
      hold: (bytes) => call.hold(bytes),
      release: (bytes) => call.release(bytes),
    },
    client,
    release: () => request.signal.removeEventListener('abort', left),
  }
}

const TIMEOUTS: ReadonlySet<string | undefined> = new Set(['total_cap', 'idle_timeout', 'first_byte_timeout'])

/** Why there will be no video, by what the record of its request says. */
const faultOf = (outcome: Outcome | undefined): Required<Video>['fault'] => ({
  code: TIMEOUTS.has(outcome?.code) ? 'upstream_timeout' : 'upstream_failed',
  message: outcome?.message ?? 'The node was lost before the video was done.',
})

/**
 * Begins videos. The request that makes one lasts until the node is done, with its slot and its record; its client is
 * answered as soon as the node has taken the job. The book has what the node said last.
 */
export const createVideoStart = (
  { fleet, decisions }: Pick<ServerDeps, 'fleet' | 'decisions'>,
  serve: Serve,
  book: VideoBook,
): ((call: Call) => Promise<Response>) => {
  /** Keeps the book up to date until the request is over. */
  const follow = async (video: Video, states: AsyncGenerator<Json>): Promise<void> => {
    let { state } = video
    const tell = (change: Pick<Video, 'fault' | 'stop'>): void => {
      if (book.get(video.id)) book.keep({ ...video, ...change, state })
    }
    try {
      for await (const next of states) {
        state = next
        tell(isVideoOver(state) ? { stop: undefined } : {})
      }
    } catch {
      // The record says why.
    }
    if (isVideoOver(state)) return
    const outcome = decisions.get(requestOf(video.id))?.outcome
    // Its node goes on with it, and the next process asks for it there.
    if (outcome?.code === 'draining') return
    tell({ fault: faultOf(outcome), stop: undefined })
  }

  return async (original) => {
    const { call, client, release } = detached(original)
    const response = await serve(videoRoute, call)
    if (!response.ok || response.body === null) {
      original.answered()
      return response
    }
    const states = objectsOf(response.body)
    const first = await states.next()
    release()
    const node = decisions.get(call.id)?.phases.findLast((phase) => phase.node !== undefined)?.node
    if (first.done || node === undefined) {
      client.abort()
      throw new RouterError('upstream_failed', 'The node told nothing of the video.')
    }
    const state = first.value
    const kind = fleet.descriptions().find(({ name }) => name === node)?.kind
    const at = { id: String(state.id), dialect: kind === 'sdcpp' ? ('sdcpp' as const) : ('openai' as const) }
    const video: Video = {
      id: videoOf(call.id),
      begunAt: call.at,
      node,
      at: { ...at, model: String(state.model) },
      ...(call.caller && { key: call.caller.name }),
      state,
      stop: isVideoOver(state) ? undefined : () => client.abort(),
    }
    book.keep(video)
    void follow(video, states)
    original.answered()
    return Response.json(shown(video))
  }
}
