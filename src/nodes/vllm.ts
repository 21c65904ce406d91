import { Type } from '@sinclair/typebox'
import type { NodeDescription, NodeReport } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { peek, shaped } from './peek'
import { known } from './schema'
import { countVllm } from './vllm-count'
import { Models, occupancyOf, residentOf, storedOf, Version } from './vllm-wire'

const Sight = Type.Object({ data: Type.Array(Type.Object({ owned_by: Type.Literal('vllm') }), { minItems: 1 }) })

/**
 * vLLM: one model, in memory from start to end, with its LoRA adapters as further names. It batches continuously and
 * tells no limit; what runs and waits stands in its metrics.
 */
export const vllm: NodeAdapter = {
  kind: 'vllm',
  native: ['openai'],
  lingersAfterCancel: false,

  async fingerprint(url, http, signal) {
    const models = await peek(url, '/v1/models', http, signal)
    if (models?.headers.has('x-fleet-instance') || !shaped(Sight, models)) return undefined
    const version = shaped(Version, await peek(url, '/version', http, signal))
    return version && { kind: 'vllm', version: version.version, url: rootOf(url) }
  },

  async report(node, http, signal): Promise<NodeReport> {
    const [{ data }, version, metrics] = await Promise.all([
      http.json(Models, endpoint(node.url, '/v1/models'), { node, signal }),
      http.json(Version, endpoint(node.url, '/version'), { node, signal }).catch(undefinedWithoutPath),
      metricsOf(node, http, signal),
      checkHealth(node, http, signal),
    ])
    return known({
      version: version?.version,
      models: storedOf(data),
      resident: residentOf(data, occupancyOf(metrics)),
      canLoad: false,
      canUnload: false,
    })
  },

  countTokens: countVllm,
}

/** The HTTP server outlives its engine: then the lists still answer and `/health` says 503. */
const checkHealth = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<void> => {
  const { status } = await http.raw(endpoint(node.url, '/health'), { node, signal })
  if (status < 500) return
  const message = `the engine of ${node.name} is dead: /health answered ${status}`
  throw new NodeFault({ class: 'status', message, status, bytes: 0, elapsedMs: 0 })
}

/** Empty where a proxy hides the metrics. */
const metricsOf = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<string> => {
  const { status, text } = await http.raw(endpoint(node.url, '/metrics'), { node, signal })
  return status === 200 ? text : ''
}

const undefinedWithoutPath = (error: unknown): undefined => {
  if (!(error instanceof NodeFault) || error.failure.status !== 404) throw error
}
