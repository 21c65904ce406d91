import type { Lane } from '../domain/job'
import type { NodeAdapter } from './adapter'
import { boundedMap } from './bounded-map'
import type { UpstreamSend } from './upstream'

/** How long a lane that failed is left alone, in ms; the next request after it shows whether it works again. */
const LEFT_ALONE_MS = 30_000
/** Failures in a row, since one may be the fault of its request. */
const FAILURES = 2
const REMEMBERED_LANES = 2_000

const ENDPOINTS: readonly (readonly [path: string, lane: Lane])[] = [
  ['/v1/images/generations', 'image'],
  ['/v1/images/edits', 'image'],
  ['/v1/images/variations', 'image'],
  ['/sdapi/v1/txt2img', 'image'],
  ['/sdapi/v1/img2img', 'image'],
  ['/sdcpp/v1/img_gen', 'image'],
  ['/sdcpp/v1/vid_gen', 'video'],
  ['/v1/videos', 'video'],
  ['/v1/audio/transcriptions', 'transcription'],
  ['/v1/audio/translations', 'transcription'],
  ['/v1/audio/speech', 'speech'],
  ['/api/extra/music/prepare', 'music'],
  ['/api/extra/music/generate', 'music'],
]

/** Endpoints by the last part of their path. */
const nameOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1)
const BY_NAME = new Map(ENDPOINTS.map(([path, lane]) => [nameOf(path), { path, lane }]))
const WATCHED: readonly Lane[] = [...new Set(ENDPOINTS.map(([, lane]) => lane))]

interface Trouble {
  readonly failures: number
  /** On the clock of `performance.now()`. */
  readonly until: number
}

/** The lane that a request is for, and the server's root before its path. */
const laneAt = ({ method, url }: UpstreamSend): { readonly root: string; readonly lane: Lane } | undefined => {
  const endpoint = BY_NAME.get(nameOf(url))
  if (endpoint === undefined || method !== 'POST' || !url.endsWith(endpoint.path)) return undefined
  return { root: url.slice(0, -endpoint.path.length), lane: endpoint.lane }
}

/** An engine that has not started its model, or has too much to do, says so with these; that passes by itself. */
const isFailure = (status: number): boolean => status >= 500 && status !== 503

/** The server says that it does not have the endpoint at all. */
const NOT_IMPLEMENTED = 501

/**
 * The adapter, reporting a lane as down after its requests failed on the server, so that the others go on being served.
 * It only looks at answers that clients asked for: nothing is sent to find out.
 */
export const watchingLanes = (adapter: NodeAdapter): NodeAdapter => {
  const troubles = boundedMap<Trouble>(REMEMBERED_LANES)
  const keyOf = (root: string, lane: Lane): string => `${lane} ${root}`

  const note = (key: string, status: number): void => {
    const failures = isFailure(status) ? (troubles.get(key)?.failures ?? 0) + 1 : 0
    const isDown = status === NOT_IMPLEMENTED || failures >= FAILURES
    // A refusal of the request says nothing of the lane.
    if (isFailure(status) || (status < 400 && troubles.get(key)))
      troubles.set(key, { failures, until: isDown ? performance.now() + LEFT_ALONE_MS : 0 })
  }

  const isDown = (root: string, lane: Lane): boolean =>
    (troubles.get(keyOf(root, lane))?.until ?? 0) > performance.now()

  return {
    ...adapter,

    async report(node, http, signal) {
      const report = await adapter.report(node, http, signal)
      const down = WATCHED.filter((lane) => isDown(node.url, lane))
      return down.length === 0 ? report : { ...report, lanesDown: [...new Set([...(report.lanesDown ?? []), ...down])] }
    },

    send(request, upstream) {
      const { send = upstream.send } = adapter
      const sent = send(request, upstream)
      const at = laneAt(request)
      if (at === undefined) return sent
      return sent.then((reply) => {
        note(keyOf(at.root, at.lane), reply.status)
        return reply
      })
    },
  }
}
