import { Type } from '@sinclair/typebox'
import { sameModel } from '../domain/job'
import type { NodeDescription, NodeReport, ResidentModel } from '../domain/node'
import { type LoadOptions, NodeFault } from '../ports/node-gateway'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'
import type { createSlotCount } from './llamacpp-slots'
import { type Child, Children, contextOf, Props, slotsOf, toStored } from './llamacpp-wire'
import { known } from './schema'
import { until } from './until'

/** How often `/models` is asked while a model comes or goes. */
const CHANGE_POLL_MS = 250
/** Polls for which a failure may be that of an earlier attempt. */
const STALE_POLLS = 4

const Accepted = Type.Object({ success: Type.Optional(Type.Boolean()) })

const IN_MEMORY = new Set(['loaded', 'loading', 'sleeping'])

/**
 * A llama-server started without a model: it starts and stops one child process per model. A GET that names a model
 * loads it unless it carries `autoload=false`.
 */
export const reportRouter = async (
  node: NodeDescription,
  props: Props,
  countBusy: ReturnType<typeof createSlotCount>,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<NodeReport> => {
  const children = (await list(node, http, signal)).filter(({ status }) => status.value !== 'downloading')

  const inspect = async (child: Child): Promise<{ child: Child; own?: Props; running?: number | undefined }> => {
    if (child.status.value !== 'loaded') return { child }
    const query = `?model=${encodeURIComponent(child.id)}&autoload=false`
    const own = await http.json(Props, endpoint(node.url, `/props${query}`), { node, signal }).catch(unloadedMeanwhile)
    return own ? { child, own, running: await countBusy(node, query, own, http, signal) } : { child }
  }
  const inspected = await Promise.all(children.map(inspect))

  return known({
    version: props.build_info,
    models: inspected.map(({ child, own }) => toStored(child, own)),
    resident: inspected.flatMap(({ child, own, running }) => toResident(child, own, running)),
    canLoad: true,
    canUnload: true,
    maxResident: props.max_instances && props.max_instances > 0 ? props.max_instances : undefined,
  })
}

/** Starts the model's child and waits until it answers. */
export const loadRouter = async (
  node: NodeDescription,
  model: string,
  { evicts }: LoadOptions,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<void> => {
  await Promise.all(evicts.map((evicted) => unloadRouter(node, evicted, http, signal)))
  const before = await find(node, model, http, signal)
  if (!before) throw fault(`${node.name} has no model ${model}`, 404)
  // A sleeping child counts as running and is only woken by a request; a fresh start costs the same.
  if (before.status.value === 'sleeping') await unloadRouter(node, model, http, signal)
  await command(node, 'load', model, http, signal)

  let polls = 0
  let seenLoading = false
  const isLoaded = async (): Promise<boolean> => {
    const status = (await find(node, model, http, signal))?.status
    polls += 1
    if (status?.value === 'loaded' || status?.value === 'sleeping') return true
    if (status?.value === 'loading') seenLoading = true
    else if (seenLoading || polls > STALE_POLLS) throw loadFailed(node, model, status)
    return false
  }
  await until(`${node.name} to load ${model}`, isLoaded, CHANGE_POLL_MS, signal)
}

/** Stops the model's child and waits until its memory is free. */
export const unloadRouter = async (
  node: NodeDescription,
  model: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<void> => {
  await command(node, 'unload', model, http, signal)
  const isGone = async (): Promise<boolean> => {
    const child = await find(node, model, http, signal)
    return !child || !IN_MEMORY.has(child.status.value)
  }
  await until(`${model} to leave the memory of ${node.name}`, isGone, CHANGE_POLL_MS, signal)
}

const list = async (node: NodeDescription, http: NodeHttp, signal: AbortSignal): Promise<readonly Child[]> =>
  (await http.json(Children, endpoint(node.url, '/models'), { node, signal })).data

const find = async (node: NodeDescription, model: string, http: NodeHttp, signal: AbortSignal) =>
  (await list(node, http, signal)).find(({ id }) => sameModel(id, model))

/** `400` says that the model is already where it was to go ("already running", "not running"); the wait will tell. */
const command = async (
  node: NodeDescription,
  verb: 'load' | 'unload',
  model: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<void> => {
  try {
    const url = endpoint(node.url, `/models/${verb}`)
    await http.json(Accepted, url, { method: 'POST', body: { model }, node, signal })
  } catch (error) {
    if (!(error instanceof NodeFault) || error.failure.status !== 400) throw error
  }
}

const toResident = (child: Child, own: Props | undefined, running: number | undefined): readonly ResidentModel[] => {
  if (child.status.value === 'loading') return [{ name: child.id, state: 'loading' }]
  // A sleeping child holds no weights: its next request loads them again.
  if (child.status.value !== 'loaded' || own?.is_sleeping) return []
  return [
    known({
      name: child.id,
      state: 'ready' as const,
      contextTokens: contextOf(child, own),
      slots: slotsOf(own),
      running,
    }),
  ]
}

const unloadedMeanwhile = (error: unknown): undefined => {
  if (!(error instanceof NodeFault)) throw error
}

const loadFailed = (node: NodeDescription, model: string, status: Child['status'] | undefined): NodeFault =>
  fault(
    status?.failed
      ? `${node.name} could not load ${model}: its process ended with exit code ${status.exit_code ?? 'unknown'}; see the log of that llama-server`
      : `${node.name} could not load ${model}: it was stopped while it was loading`,
  )

const fault = (message: string, status?: number): NodeFault =>
  new NodeFault({ class: 'status', message, bytes: 0, elapsedMs: 0, ...(status && { status }) })
