import { RouterError } from '../../domain/errors'
import type { NodeDescription } from '../../domain/node'
import type { Reply } from '../../ports/node-gateway'
import { dialectFor } from '../../wire'
import type { Arrival } from '../../wire/dialect'
import type { Exchange } from '../../wire/exchange'
import { isObject } from '../../wire/json/values'
import { videoContent, videoDeletion, videoStanding } from '../../wire/video-calls'
import type { AskedVideo } from '../../wire/video-states'
import { videoRoute } from '../../wire/videos'
import { contextOf } from '../context'
import type { ServerDeps } from '../deps'
import { type Call, type Route, restOf } from '../route'
import { createVideoBook, isOrphan, shown, type Video } from '../video-book'
import { createVideoStart } from '../video-start'
import { type Serve, toResponse } from './inference'

const path = videoRoute.path
const prefix = `${path}/`
const content = '/content'

const noSuch = (id: string): RouterError =>
  new RouterError('not_found', `There is no video "${id}".`, {
    param: 'video_id',
    hint: 'The latest 1 000 are known; with state.backend = "memory" a restart forgets them.',
  })

const GONE: ReadonlySet<number> = new Set([404, 410])

const textAt = (state: Video['state'], member: 'size' | 'seconds'): Pick<AskedVideo, typeof member> =>
  typeof state[member] === 'string' ? { [member]: state[member] } : {}

/**
 * Videos take minutes, so their clients come back for them. How one stands is answered from what the request hears that
 * makes it; only the video itself is fetched. Of one that outlived the router that began it, its node is asked.
 */
export const videoRoutes = (deps: ServerDeps, serve: Serve): Route[] => {
  const { config, fleet, manage } = deps
  const book = createVideoBook(deps.videos)

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

  const mustHold = (video: Video): NodeDescription => {
    const holder = holderOf(video)
    if (holder) return holder
    const message = `The video "${video.id}" was made on ${video.node}, which is not in the fleet any more.`
    throw new RouterError('not_found', message)
  }

  const ask = (exchange: Exchange, holder: NodeDescription, { request }: Call): Promise<Reply> =>
    manage(exchange, holder, request.signal, config.limits.firstTokenTimeoutMs)

  /** The video as its node says that it stands now. */
  const asked = async (call: Call, video: Video): Promise<Video> => {
    const { node, at, state } = video
    const wish = { model: at.model, ...textAt(state, 'size'), ...textAt(state, 'seconds') }
    const { status, body } = await ask(videoStanding(arrivalOf(call), at, wish), mustHold(video), call)
    const said: unknown = status === 200 ? await new Response(body).json() : undefined
    if (!isObject(said) && !GONE.has(status))
      throw new RouterError('upstream_failed', `${node} did not say how the video stands: it answered ${status}.`)
    const message = `${node} does not know the video any more.`
    const now = isObject(said) ? { ...video, state: said } : { ...video, fault: { code: 'upstream_failed', message } }
    // It may have been deleted meanwhile.
    if (book.get(video.id)) book.keep(now)
    return now
  }

  const retrieve = async (call: Call): Promise<Response> => {
    const video = find(call, restOf(call.path, prefix))
    if (!isOrphan(video)) return Response.json(shown(video))
    call.received()
    const now = await asked(call, video)
    call.answered()
    return Response.json(shown(now))
  }

  const download = async (call: Call): Promise<Response> => {
    const video = find(call, restOf(call.path.slice(0, -content.length), prefix))
    const { status } = shown(video)
    // Whether an orphan is done only its node knows.
    if (status !== 'completed' && !isOrphan(video))
      throw new RouterError('invalid_request', `The video is ${status}; only a completed one can be fetched.`)
    const holder = mustHold(video)
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
    const isAtNode = isOrphan(video) || (state.status === 'completed' && at.dialect === 'openai')
    if (stop) stop()
    else if (isAtNode && holder) {
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
    route('POST', path, createVideoStart(deps, serve, book), true),
    route('GET', path, list),
    route('GET', `${prefix}*`, retrieve, true),
    route('DELETE', `${prefix}*`, remove, true),
    route('GET', `${prefix}:id${content}`, download, true),
  ]
}
