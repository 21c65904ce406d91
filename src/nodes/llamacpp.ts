import type { NodeDescription, NodeReport, ResidentModel } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import type { NodeAdapter } from './adapter'
import { endpoint, rootOf } from './endpoint'
import type { NodeHttp } from './http'
import { countLlamacpp } from './llamacpp-count'
import { loadRouter, reportRouter, unloadRouter } from './llamacpp-router'
import { createSlotCount } from './llamacpp-slots'
import { contextOf, type Entry, isRouter, Models, Props, slotsOf, toStored } from './llamacpp-wire'
import { peek, shaped } from './peek'
import { known } from './schema'

/** llama-server, with one model or as the router of several. */
export const createLlamacpp = (): NodeAdapter => {
  const countBusy = createSlotCount()

  return {
    kind: 'llamacpp',
    native: ['openai'],
    lingersAfterCancel: false,

    async fingerprint(url, http, signal) {
      const answer = await peek(url, '/props', http, signal)
      if (!answer || answer.headers.has('x-fleet-instance')) return undefined
      const version = shaped(Props, answer)?.build_info
      // While it loads, all it gives is 503 and this header; behind a proxy, the header may be another one.
      const isNamed = answer.headers.get('server') === 'llama.cpp'
      return isNamed || version ? { kind: 'llamacpp', url: rootOf(url), ...(version && { version }) } : undefined
    },

    async report(node, http, signal) {
      try {
        const props = await http.json(Props, endpoint(node.url, '/props'), { node, signal })
        if (isRouter(props)) return await reportRouter(node, props, countBusy, http, signal)
        const [{ data }, running] = await Promise.all([
          http.json(Models, endpoint(node.url, '/v1/models'), { node, signal }),
          countBusy(node, '', props, http, signal),
        ])
        return single(data, props, props.is_sleeping ? [] : data.map((entry) => toReady(entry, props, running)))
      } catch (error) {
        if (isLoading(error)) return reportLoading(node, http, signal)
        throw error
      }
    },

    load: loadRouter,
    unload: unloadRouter,
    countTokens: countLlamacpp,
  }
}

/** A sleeping server reports its model as stored only: the weights are out of memory until a request brings them back. */
const single = (entries: readonly Entry[], props: Props, resident: readonly ResidentModel[]): NodeReport =>
  known({
    version: props.build_info,
    models: entries.map((entry) => toStored(entry, props)),
    resident,
    canLoad: false,
    canUnload: false,
  })

const toReady = (entry: Entry, props: Props, running: number | undefined): ResidentModel =>
  known({
    name: entry.id,
    state: 'ready' as const,
    contextTokens: contextOf(entry, props),
    slots: slotsOf(props),
    running,
  })

const isLoading = (error: unknown): boolean =>
  error instanceof NodeFault && error.failure.status === 503 && /loading/i.test(error.failure.message)

/**
 * Some versions name the model while they load it. The others answer 503 to everything; then the configuration may say
 * which one it is, else nothing is known and the poll has failed: an empty list would read as "has no models".
 */
const reportLoading = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<NodeReport> => {
  const entries = await http.json(Models, endpoint(node.url, '/v1/models'), { node, signal }).then(
    ({ data }) => data,
    (error: unknown) => {
      if (isLoading(error) && node.models?.length === 1) return node.models.map((id): Entry => ({ id }))
      throw isLoading(error) ? stillLoading(node, error as NodeFault) : error
    },
  )
  return single(
    entries,
    {},
    entries.map(({ id }) => ({ name: id, state: 'loading' })),
  )
}

const stillLoading = (node: NodeDescription, { failure }: NodeFault): NodeFault =>
  new NodeFault({ ...failure, class: 'overloaded', message: `${node.name} is still loading its model` })
