import type { NodeKind } from '../domain/node'
import { RouterError } from '../domain/errors'
import { NodeFault } from '../ports/node-gateway'
import type { CountOnNode } from '../wire/token-count'
import type { NodeAdapter } from './adapter'
import type { NodeHttp } from './http'

export interface TokenCountDeps {
  adapters(kind: NodeKind): Pick<NodeAdapter, 'countTokens'>
  readonly http: NodeHttp
  /** For all nodes that are asked about one prompt together, in ms: a client waits for it before it asks its question. */
  readonly limitMs?: number
}

const LIMIT_MS = 1_000
/** Counts on the way at once, over all nodes. They share the connections of the polls, which must not wait behind them. */
const AT_ONCE = 64
/** Nodes that are asked about one prompt, one after the other. */
const TRIES = 2

/** The exact tokens of a prompt, from the nodes whose kind can count. */
export const createTokenCount = ({ adapters, http, limitMs = LIMIT_MS }: TokenCountDeps): CountOnNode => {
  let asking = 0

  return async (holders, prompt, signal) => {
    const able = holders.flatMap(({ node, model }) => {
      const { countTokens } = adapters(node.kind)
      return countTokens ? [{ node: { ...node, url: node.residencyUrl ?? node.url }, model, countTokens }] : []
    })
    if (able.length === 0 || asking >= AT_ONCE) return undefined
    const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
    asking += 1
    try {
      for (const { node, model, countTokens } of able.slice(0, TRIES)) {
        const tokens = await countTokens(node, model, prompt, http, limited).catch(undefinedAsAnEstimateWillDo)
        if (tokens !== undefined) return { node: node.name, tokens }
      }
    } finally {
      asking -= 1
    }
  }
}

/** A prompt that an engine cannot take is refused when it is sent to be answered, with the reason. */
const undefinedAsAnEstimateWillDo = (error: unknown): undefined => {
  if (!(error instanceof NodeFault) && !(error instanceof RouterError)) throw error
}
