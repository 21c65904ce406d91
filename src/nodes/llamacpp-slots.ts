import type { NodeDescription } from '../domain/node'
import { NodeFault } from '../ports/node-gateway'
import { boundedMap } from './bounded-map'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'
import { type Props, Slots } from './llamacpp-wire'

const REMEMBERED_SERVERS = 2_000
/** Idle answers in a row after which the polls thin out. */
const PATIENCE = 12

/** Idle answers seen in a row, and polls to let pass before the next question. */
interface Quiet {
  readonly idle: number
  readonly skip: number
}

/**
 * Counts the requests that a llama-server runs, without keeping it awake. Asking for `/slots` wakes a sleeping server
 * and, asked regularly, keeps one with `--sleep-idle-seconds` from ever sleeping. So: never while it sleeps, and after a
 * minute of idle answers at doubling distances. A server that may sleep after n seconds then sleeps after about 3n, and
 * foreign work is noticed no later than the server had been idle before it.
 */
export const createSlotCount = () => {
  const quiet = boundedMap<Quiet>(REMEMBERED_SERVERS)

  /** Busy slots now; undefined when the server does not tell or was not asked this time. `query` starts with `?` or is empty. */
  return async (
    node: NodeDescription,
    query: string,
    props: Props,
    http: NodeHttp,
    signal: AbortSignal,
  ): Promise<number | undefined> => {
    const key = `${node.url} ${query}`
    if (props.is_sleeping) quiet.set(key, { idle: 0, skip: 0 })
    if (props.is_sleeping || !props.endpoint_slots) return undefined

    const { idle, skip } = quiet.get(key) ?? { idle: 0, skip: 0 }
    if (skip > 0) {
      quiet.set(key, { idle, skip: skip - 1 })
      return undefined
    }
    const busy = await ask(node, query, http, signal)
    const idleNow = busy === 0 ? idle + 1 : 0
    quiet.set(key, { idle: idleNow, skip: idleNow <= PATIENCE ? 0 : 2 ** Math.min(idleNow - PATIENCE, 20) })
    return busy
  }
}

/** A child that was unloaded meanwhile, or a server without the endpoint, leaves the count unknown. */
const ask = async (
  node: NodeDescription,
  query: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<number | undefined> => {
  try {
    const slots = await http.json(Slots, endpoint(node.url, `/slots${query}`), { node, signal })
    return slots.filter((slot) => slot.is_processing).length
  } catch (error) {
    if (error instanceof NodeFault) return undefined
    throw error
  }
}
