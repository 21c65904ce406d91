import { Type } from '@sinclair/typebox'
import type { NodeDescription, NodeReport } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { boundedMap } from './bounded-map'
import { endpoint, rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { loadInstance, unloadInstances } from './lmstudio-load'
import { isLoadedV0, ModelsV0, ModelsV1, toResident, toResidentV0, toStored, toStoredV0 } from './lmstudio-wire'
import { ModelList } from './openai'
import { peek, shaped } from './peek'

const REMEMBERED_SERVERS = 2_000
/** Polls between two questions for the newer API: LM Studio writes an error into its log for each path it does not know. */
const POLLS_BETWEEN = 30

const SightV1 = Type.Object({ models: Type.Array(Type.Object({ key: Type.String() }), { minItems: 1 }) })
const SightV0 = Type.Object({ data: Type.Array(Type.Object({ compatibility_type: Type.String() }), { minItems: 1 }) })

/** LM Studio with either generation of its REST API. */
export const createLmstudio = (): NodeAdapter => {
  /** Polls to go until a server that had only the older API is asked for the newer one again. */
  const older = boundedMap<number>(REMEMBERED_SERVERS)

  return {
    kind: 'lmstudio',
    native: ['openai'],
    lingersAfterCancel: true,

    /** It has no version anywhere; without a single model it cannot be told from other servers. */
    async fingerprint(url, http, signal) {
      const newer = await peek(url, '/api/v1/models', http, signal)
      if (newer?.headers.has('x-fleet-instance')) return undefined
      const isIt = shaped(SightV1, newer) ?? shaped(SightV0, await peek(url, '/api/v0/models', http, signal))
      return isIt && { kind: 'lmstudio', url: rootOf(url) }
    },

    async report(node, http, signal) {
      const pollsToGo = older.get(node.url) ?? 0
      if (pollsToGo > 0) {
        older.set(node.url, pollsToGo - 1)
        return reportV0(node, http, signal)
      }
      try {
        return await reportV1(node, http, signal)
      } catch (error) {
        if (!isUnknownPath(error)) throw error
        // The first fault is the one to show when neither answers: it names the current API.
        const report = await reportV0(node, http, signal).catch(() => Promise.reject(error))
        older.set(node.url, POLLS_BETWEEN)
        return report
      }
    },

    load: loadInstance,
    unload: unloadInstances,
  }
}

const reportV1 = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<NodeReport> => {
  const { models } = await http.json(ModelsV1, endpoint(node.url, '/api/v1/models'), { node, signal })
  return {
    models: models.map(toStored),
    resident: models.flatMap(toResident),
    canLoad: true,
    canUnload: true,
    loadsOnRequest: true,
  }
}

/**
 * The older API only tells. A model is loaded by the request that needs it, if that is switched on: then `/v1/models`
 * lists every model, otherwise those in memory, and the others cannot be had.
 */
const reportV0 = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<NodeReport> => {
  const [{ data }, listed] = await Promise.all([
    http.json(ModelsV0, endpoint(node.url, '/api/v0/models'), { node, signal }),
    http.json(ModelList, endpoint(node.url, '/v1/models'), { node, signal }),
  ])
  const offered = new Set((listed.data ?? []).map(({ id }) => id))
  const models = data.filter((entry) => isLoadedV0(entry) || offered.has(entry.id))
  return {
    models: models.map(toStoredV0),
    resident: models.filter(isLoadedV0).map(toResidentV0),
    canLoad: false,
    canUnload: false,
    loadsOnRequest: true,
  }
}

/** LM Studio answers 200 with an error text to a path that it does not know; a proxy in front of it may say 404. */
const isUnknownPath = (error: unknown): boolean =>
  error instanceof NodeFault && (error.failure.class === 'bad_content' || error.failure.status === 404)
