import type { Lane } from '../domain/job'
import type { NodeAdapter } from './adapter'
import { boundedMap } from './bounded-map'
import type { UpstreamSend } from './upstream'

/** How long a lane that failed is left alone, in ms; the next request after it shows whether it works again. */
const LEFT_ALONE_MS = 30_000
/** Different requests that failed in a row: any one of them may be wrong itself. */
const FAILURES = 3
/** Failures of a lane that are remembered. */
const REMEMBERED_FAILURES = 16
const REMEMBERED_LANES = 2_000
const REMEMBERED_REQUESTS = 2_000

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
  ['/inference', 'transcription'],
  ['/v1/audio/speech', 'speech'],
  ['/api/extra/music/prepare', 'music'],
  ['/api/extra/music/generate', 'music'],
]

/** Endpoints by the last part of their path. */
const nameOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1)
const BY_NAME = new Map(ENDPOINTS.map(([path, lane]) => [nameOf(path), { path, lane }]))
const WATCHED: readonly Lane[] = [...new Set(ENDPOINTS.map(([, lane]) => lane))]

interface Trouble {
  /** The wishes that failed one after the other, each once. */
  readonly failures: readonly string[]
  /** On the clock of `performance.now()`. */
  readonly until: number
}

const NO_TROUBLE: Trouble = { failures: [], until: 0 }

/** Where a request failed first, and with what wish. */
interface Failed {
  readonly key: string
  readonly wish: string
}

/** Stands for a wish that another server could fulfil: should it fail again, that counts again. */
const PROVEN = ''

/** What is asked for, as a hash: of a form without its boundary, which is another one each time. */
const wishOf = ({ headers, body }: UpstreamSend): string => {
  const [, boundary] = /boundary="?([^";]+)/.exec(headers['content-type'] ?? '') ?? []
  if (boundary === undefined) return String(Bun.hash(body))
  const form = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  let hash: number | bigint = 0
  let from = 0
  for (let at = form.indexOf(boundary); at >= 0; at = form.indexOf(boundary, from)) {
    hash = Bun.hash(form.subarray(from, at), hash)
    from = at + boundary.length
  }
  return String(Bun.hash(form.subarray(from), hash))
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
 * Makes adapters report a lane as down after its requests failed on the server, so that the others go on being served.
 * It only looks at answers that clients asked for: nothing is sent to find out.
 *
 * One client must not take a lane away from everybody. So the same wish counts once however often it comes; what two servers fail
 * on counts for neither, and what one of them fulfils counts against the other. A server that was away and is back begins anew.
 */
export const createLaneWatch = (): ((adapter: NodeAdapter) => NodeAdapter) => {
  const troubles = boundedMap<Trouble>(REMEMBERED_LANES)
  const failedFirst = boundedMap<Failed>(REMEMBERED_REQUESTS)
  const keyOf = (root: string, lane: Lane): string => `${lane} ${root}`
  const troubleOf = (key: string): Trouble => troubles.get(key) ?? NO_TROUBLE
  const soon = (): number => performance.now() + LEFT_ALONE_MS

  const failed = (key: string, wish: string, request: string | undefined): void => {
    const first = request === undefined ? undefined : failedFirst.get(request)
    if (first !== undefined && first.key !== key) {
      const failures = troubleOf(first.key).failures.filter((one) => one !== first.wish)
      troubles.set(first.key, { failures, until: failures.length < FAILURES ? 0 : troubleOf(first.key).until })
      return
    }
    if (request !== undefined) failedFirst.set(request, { key, wish })
    const { failures: before } = troubleOf(key)
    if (before.includes(wish)) return
    const failures = [...before, wish].slice(-REMEMBERED_FAILURES)
    troubles.set(key, { failures, until: failures.length < FAILURES ? 0 : soon() })
  }

  const succeeded = (key: string, request: string | undefined): void => {
    if (troubles.get(key)) troubles.set(key, NO_TROUBLE)
    const first = request === undefined ? undefined : failedFirst.get(request)
    if (first === undefined || first.key === key) return
    const { failures, until } = troubleOf(first.key)
    troubles.set(first.key, { failures: failures.map((one) => (one === first.wish ? PROVEN : one)), until })
  }

  const note = (key: string, status: number, request: UpstreamSend): void => {
    const id = request.sender?.call?.request
    if (status === NOT_IMPLEMENTED) troubles.set(key, { ...troubleOf(key), until: soon() })
    else if (isFailure(status)) failed(key, wishOf(request), id)
    // A refusal of the request says nothing of the lane.
    else if (status < 400) succeeded(key, id)
  }

  const isDown = (root: string, lane: Lane): boolean => troubleOf(keyOf(root, lane)).until > performance.now()

  const forgive = (root: string): void => {
    for (const lane of WATCHED) if (troubles.get(keyOf(root, lane))) troubles.set(keyOf(root, lane), NO_TROUBLE)
  }

  return (adapter) => ({
    ...adapter,

    async report(node, http, signal) {
      const report = await adapter.report(node, http, signal).catch((error: unknown) => {
        forgive(node.url)
        throw error
      })
      const down = WATCHED.filter((lane) => isDown(node.url, lane))
      return down.length === 0 ? report : { ...report, lanesDown: [...new Set([...(report.lanesDown ?? []), ...down])] }
    },

    send(request, upstream) {
      const { send = upstream.send } = adapter
      const sent = send(request, upstream)
      const at = laneAt(request)
      if (at === undefined) return sent
      return sent.then((reply) => {
        note(keyOf(at.root, at.lane), reply.status, request)
        return reply
      })
    },
  })
}
