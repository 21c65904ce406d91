import { sameModel } from '../domain/job'
import type { NodeDescription } from '../domain/node'
import { type LoadOptions, NodeFault } from '../ports/node-gateway'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'
import { type Entry, instancesOf, LoadedV1, mainInstance, ModelsV1, namesOf, UnloadedV1 } from './lmstudio-wire'
import { until } from './until'

/** How often the list is asked while a model leaves. */
const LEAVING_POLL_MS = 250

/**
 * Loads the model by name, which LM Studio does beside whatever is in memory. Asked to load what it has already, it
 * would make a second copy, so the list is read first: a copy whose window is wide enough is what was wanted, a
 * narrower one goes.
 */
export const loadInstance = async (
  node: NodeDescription,
  model: string,
  { contextTokens, evicts }: LoadOptions,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<void> => {
  await Promise.all(evicts.map((evicted) => unloadInstances(node, evicted, http, signal)))
  const entry = await find(node, model, http, signal)
  if (!entry) {
    throw new NodeFault({
      class: 'status',
      message: `${node.name} has no model ${model}`,
      status: 404,
      bytes: 0,
      elapsedMs: 0,
    })
  }
  const loaded = mainInstance(entry)
  const window = loaded?.config?.context_length
  if (loaded && (contextTokens === undefined || !window || window >= contextTokens)) return
  if (loaded) await unloadInstances(node, model, http, signal)
  await http.json(LoadedV1, endpoint(node.url, '/api/v1/models/load'), {
    method: 'POST',
    body: { model: entry.key, ...(contextTokens && { context_length: contextTokens }) },
    node,
    signal,
    timeoutMs: Number.POSITIVE_INFINITY,
  })
}

/** Unloads every copy of the model and waits until the list shows none. */
export const unloadInstances = async (
  node: NodeDescription,
  model: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<void> => {
  const copies = async () => {
    const entry = await find(node, model, http, signal)
    return entry ? instancesOf(entry) : []
  }
  for (const { id } of await copies()) {
    const url = endpoint(node.url, '/api/v1/models/unload')
    const unloaded = http.json(UnloadedV1, url, { method: 'POST', body: { instance_id: id }, node, signal })
    await unloaded.catch(goneMeanwhile)
  }
  const isGone = async (): Promise<boolean> => (await copies()).length === 0
  await until(`${model} to leave the memory of ${node.name}`, isGone, LEAVING_POLL_MS, signal)
}

const find = async (
  node: NodeDescription,
  model: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<Entry | undefined> => {
  const { models } = await http.json(ModelsV1, endpoint(node.url, '/api/v1/models'), { node, signal })
  return models.find((entry) => namesOf(entry).some((name) => sameModel(name, model)))
}

const goneMeanwhile = (error: unknown): void => {
  if (!(error instanceof NodeFault) || error.failure.status !== 404) throw error
}
