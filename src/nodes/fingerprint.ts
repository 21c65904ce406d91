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
  native(adapters.openai),
]

/** Every server worth a closer look answers one of these with JSON; any other web server hears no more than these. */
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

const isLlamaServer = ({ headers }: Peek): boolean => headers.get('server') === 'llama.cpp'

const marksFor = (first: Peek): readonly Mark[] => (isLlamaServer(first) ? [llamacpp] : MARKS)

const firstAnswer = async (url: string, http: NodeHttp, signal: AbortSignal): Promise<Peek | undefined> => {
  for (const path of FIRST_LOOKS) {
    const answer = await peek(url, path, http, signal)
    if (!answer) return undefined
    if (answer.headers.has('x-fleet-instance') || isLlamaServer(answer)) return answer
    if (answer.status === 200 && typeof answer.body === 'object') return answer
  }
  return undefined
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
