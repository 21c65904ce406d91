import { RouterError } from '../../domain/errors'
import type { NodeDescription } from '../../domain/node'
import type { Reply } from '../../ports/node-gateway'
import { dialectFor } from '../../wire'
import type { Arrival } from '../../wire/dialect'
import type { Exchange } from '../../wire/exchange'
import type { Json } from '../../wire/json/values'
import { isVideoOver } from '../../wire/video-states'
import { videoContent, videoDeletion } from '../../wire/video-calls'
import { videoRoute } from '../../wire/videos'
import { contextOf } from '../context'
import type { ServerDeps } from '../deps'
import { type Call, type Route, restOf } from '../route'
import { createVideoBook, type Video } from '../video-book'
import { type Serve, toResponse } from './inference'

const path = videoRoute.path
const prefix = `${path}/`
const content = '/content'

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

/** As clients see it: under our id. */
const shown = ({ id, state }: Video): Json => ({ ...state, id })

const noSuch = (id: string): RouterError =>
  new RouterError('not_found', `There is no video "${id}".`, {
    param: 'video_id',
    hint: 'A restart of the router forgets where its videos are.',
  })

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
    },
    client,
    release: () => request.signal.removeEventListener('abort', left),
  }
}

/**
 * Videos take minutes, so their clients come back for them. The request that makes one lasts until the node is done, with
 * its slot and its record; how it stands is answered from what that request hears, and only the video itself is fetched.
 */
export const videoRoutes = ({ config, fleet, decisions, manage }: ServerDeps, serve: Serve): Route[] => {
  const book = createVideoBook()

  /** Keeps the book up to date until the node is done. */
  const follow = async (video: Video, states: AsyncGenerator<Json>): Promise<void> => {
    let { state } = video
    const tell = (next: Json): void => {
      state = next
      if (book.get(video.id)) book.keep({ ...video, state, stop: isVideoOver(state) ? undefined : video.stop })
    }
    try {
      for await (const next of states) tell(next)
    } catch {
      // The record says why. What the node told last stands, unless the video was still to come.
    }
    if (!isVideoOver(state)) {
      const error = { code: 'upstream_failed', message: 'The node was lost before the video was done.' }
      tell({ ...state, status: 'failed', error })
    }
  }

  const create = async (original: Call): Promise<Response> => {
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
      id: call.id.replace(/^req_/, 'video_'),
      node,
      at: { ...at, model: String(state.model) },
      key: call.caller?.name,
      state,
      stop: isVideoOver(state) ? undefined : () => client.abort(),
    }
    book.keep(video)
    void follow(video, states)
    original.answered()
    return Response.json(shown(video))
  }

  /** A key sees its own, an administrator every one. */
  const maySee = ({ caller }: Call, { key }: Video): boolean =>
    caller === undefined || caller.name === key || caller.scopes.includes('admin')

  const find = (call: Call, rest: string): Video => {
    const video = book.get(rest)
    if (video && maySee(call, video)) return video
    throw noSuch(rest)
  }

  /** The call as it goes to the node, without a body. */
  const arrivalOf = ({ id, at, path, request: { headers }, caller }: Call): Arrival => {
    const { pin: _, ...context } = contextOf(headers, at, caller, config.priorities)
    return { id, at, path, headers, body: new Uint8Array(0), context }
  }

  /** Undefined once its node was taken out of the fleet. */
  const holderOf = ({ node }: Video): NodeDescription | undefined =>
    fleet.descriptions().find(({ name }) => name === node)

  const ask = (exchange: Exchange, holder: NodeDescription, { request }: Call): Promise<Reply> =>
    manage(exchange, holder, request.signal, config.limits.firstTokenTimeoutMs)

  const download = async (call: Call): Promise<Response> => {
    const video = find(call, restOf(call.path.slice(0, -content.length), prefix))
    const { status } = video.state
    if (status !== 'completed')
      throw new RouterError('invalid_request', `The video is ${status}; only a completed one can be fetched.`)
    const holder = holderOf(video)
    if (!holder) {
      const message = `The video "${video.id}" was made on ${video.node}, which is not in the fleet any more.`
      throw new RouterError('not_found', message)
    }
    call.received()
    const { search } = new URL(call.request.url)
    const exchange = videoContent(arrivalOf(call), video.at, search)
    return toResponse(await ask(exchange, holder, call), call)
  }

  const remove = async (call: Call): Promise<Response> => {
    const video = find(call, restOf(call.path, prefix))
    const { at, state, stop } = video
    const holder = holderOf(video)
    // Of a video that failed there is nothing, and its node may be the reason.
    const isKept = state.status === 'completed' && at.dialect === 'openai'
    if (stop) stop()
    else if (isKept && holder) {
      call.received()
      await ask(videoDeletion(arrivalOf(call), at), holder, call)
      call.answered()
    }
    book.forget(video.id)
    return Response.json({ id: video.id, object: 'video.deleted', deleted: true })
  }

  const list = (call: Call): Response => {
    const data = book
      .list()
      .filter((video) => maySee(call, video))
      .map(shown)
    return Response.json({
      object: 'list',
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: false,
    })
  }

  const route = (method: Route['method'], at: string, handle: Route['handle'], patient?: true): Route => ({
    method,
    path: at,
    access: 'inference',
    refuser: dialectFor(path),
    ...(patient && { patient }),
    handle,
  })

  return [
    route('POST', path, create, true),
    route('GET', path, list),
    route('GET', `${prefix}*`, (call) => Response.json(shown(find(call, restOf(call.path, prefix))))),
    route('DELETE', `${prefix}*`, remove, true),
    route('GET', `${prefix}:id${content}`, download, true),
  ]
}
