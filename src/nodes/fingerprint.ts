import type { Identity, NodeAdapter } from './adapter'
import { rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { adapters } from './index'
import { type Peek, peek } from './peek'

/** An identity with the name of the product, for people and for node names. */
export type Sighting = Identity & { readonly product: string }

/** Looks for the marks of one product. */
type Mark = (url: string, http: NodeHttp, signal: AbortSignal) => Promise<Sighting | undefined>

/** Another router like this one, or this one itself. */
export interface FleetSighting {
  readonly kind: 'fleet'
  readonly instance: string
}

const native =
  ({ kind, fingerprint }: NodeAdapter): Mark =>
  async (url, http, signal) => {
    const identity = await fingerprint(url, http, signal)
    return identity && { ...identity, product: kind }
  }

const llamacpp = native(adapters.llamacpp)
const whispercpp = native(adapters.whispercpp)
const a1111 = native(adapters.a1111)

/**
 * The first that recognises the server wins: what imitates another product or shares its port comes before that, the
 * generic kind last, since most of the others look like it too.
 */
const MARKS: readonly Mark[] = [
  native(adapters.koboldcpp),
  native(adapters.lmstudio),
  native(adapters.sdcpp),
  native(adapters.llamaswap),
  llamacpp,
  native(adapters.vllm),
  native(adapters.sglang),
  native(adapters.ollama),
  native(adapters.mlx),
  native(adapters.openai),
]

/** An engine answers one of these with JSON, or with a mark of its own; any other web server hears no more than these. */
const FIRST_LOOKS = ['/v1/models', '/api/version', '/models']

/**
 * What answers at `url`, told by what it says and never by its port, with GETs that load, wake or stop nothing.
 * Undefined: nothing there, nothing known, or the signal fired before it was certain.
 */
export const identify = async (
  url: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<Sighting | FleetSighting | undefined> => {
  const root = rootOf(url)
  const once = remembering(http)

  const first = await firstAnswer(root, once, signal)
  const instance = first?.headers.get('x-fleet-instance')
  if (instance) return { kind: 'fleet', instance }

  for (const mark of first ? marksFor(first) : []) {
    const found = await mark(root, once, signal)
    if (signal.aborted) return undefined
    if (found) return found
  }
  return undefined
}

/** Engines that name themselves in every answer. */
const BY_SERVER: ReadonlyMap<string | null, readonly Mark[]> = new Map([
  ['llama.cpp', [llamacpp]],
  ['whisper.cpp', [whispercpp]],
])

const marksByServer = ({ headers }: Peek): readonly Mark[] | undefined => BY_SERVER.get(headers.get('server'))

/** FastAPI's word for a path that it does not have. An A1111 is built on it and has none of the first looks. */
const isFastApi = ({ status, body }: Peek): boolean =>
  status === 404 && typeof body === 'object' && body !== null && 'detail' in body && body.detail === 'Not Found'

const marksFor = (first: Peek): readonly Mark[] => marksByServer(first) ?? (isFastApi(first) ? [a1111] : MARKS)

/** The first answer that may be an engine's; of one that knows none of the paths, the first that bears a mark. */
const firstAnswer = async (url: string, http: NodeHttp, signal: AbortSignal): Promise<Peek | undefined> => {
  let marked: Peek | undefined
  for (const path of FIRST_LOOKS) {
    const answer = await peek(url, path, http, signal)
    if (!answer) return undefined
    if (answer.headers.has('x-fleet-instance') || marksByServer(answer)) return answer
    if (answer.status === 200 && typeof answer.body === 'object') return answer
    if (isFastApi(answer)) marked ??= answer
  }
  return marked
}

/** The marks share some requests; each goes out once. */
const remembering = (http: NodeHttp): NodeHttp => {
  const answers = new Map<string, ReturnType<NodeHttp['raw']>>()
  return {
    json: http.json,
    raw(url, options) {
      const answer = answers.get(url) ?? http.raw(url, options)
      answers.set(url, answer)
      return answer
    },
  }
}
