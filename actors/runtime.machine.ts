import { modelKey } from '../src/domain/job'
import type { NodeDescription, NodeReport, ResidentModel } from '../src/domain/node'
import type { Journal } from '../src/ports/journal'
import type { Failure } from '../src/domain/facts'
import { isUnsent } from '../src/placement/breaker'
import { type LoadOptions, NodeFault } from '../src/ports/node-gateway'
import { type Api, type Chart, flat } from './flat'
import { address, type RuntimeEvent } from './protocol'

export interface RuntimePorts {
  readonly load: (node: NodeDescription, model: string, options: LoadOptions, signal: AbortSignal) => Promise<void>
  readonly journal: Journal
  readonly now: () => number
}

interface Loading {
  readonly model: string
  readonly evicts: readonly string[]
  readonly startedAt: number
  readonly deadlineMs: number
  readonly sizeGb?: number
  readonly contextTokens?: number
}

export interface RuntimeContext {
  node: NodeDescription
  readonly ports: RuntimePorts
  /** What is in the node's memory, by its last report and by loads that ended since. */
  resident: readonly ResidentModel[]
  /** When our own loads ended, so that a report that began before cannot take them back. */
  readonly loadedAt: Map<string, number>
  /** When models left its memory, as far as that was seen. */
  readonly unloadedAt: Map<string, number>
  /** What the last load pushed out, and when that had surely happened: a report that began before still lists it. */
  evicted: { readonly keys: ReadonlySet<string>; until: number }
  loading: Loading | undefined
}

export type RuntimeInput = Pick<RuntimeContext, 'node' | 'ports'>

/** Keeps what one node has in memory and carries out loads, one at a time; a load outlives whoever asked for it. */
export const runtimeChart = {
  id: 'runtime',
  initial: 'steady',
  on: { 'runtime.configure': { actions: ['configure'] } },
  states: {
    steady: {
      on: {
        'model.load': { target: 'loading', actions: ['beginLoad'] },
        'runtime.observed': { actions: ['observe'] },
        'runtime.forget': { actions: ['forget'] },
      },
    },
    loading: {
      effects: ['load'],
      on: {
        'model.load': { actions: ['refuseLoad'] },
        'runtime.observed': { actions: ['observe'] },
        'load.done': { target: 'steady', actions: ['tellLoaded'] },
        'load.broke': { target: 'steady', actions: ['tellFailed'] },
      },
      after: { loadDeadline: { target: 'steady', actions: ['tellTimedOut'] } },
    },
  },
} as const satisfies Chart

type Of<T extends RuntimeEvent['type']> = Extract<RuntimeEvent, { type: T }>

/** Models in the report but for those pushed out since it began, and those of ours that ended loading since. */
const merged = (
  { resident, loadedAt, evicted }: RuntimeContext,
  report: NodeReport,
  startedAt: number,
): readonly ResidentModel[] => {
  const isGone = ({ name }: ResidentModel): boolean => startedAt < evicted.until && evicted.keys.has(modelKey(name))
  const listed = report.resident.filter((model) => !isGone(model))
  const seen = new Set(listed.map(({ name }) => modelKey(name)))
  const fresh = resident.filter(
    ({ name }) => !seen.has(modelKey(name)) && (loadedAt.get(modelKey(name)) ?? -1) >= startedAt,
  )
  return [...listed, ...fresh]
}

/** Takes over what is in memory now and notes what left it. */
const replaceResident = (context: RuntimeContext, next: readonly ResidentModel[]): void => {
  const still = new Set(next.map(({ name }) => modelKey(name)))
  for (const { name, state } of context.resident) {
    const key = modelKey(name)
    if (state === 'ready' && !still.has(key)) context.unloadedAt.set(key, context.ports.now())
  }
  for (const key of still) context.unloadedAt.delete(key)
  context.resident = next
}

const sizeText = ({ sizeGb }: Loading): string => (sizeGb === undefined ? '' : ` (${sizeGb.toFixed(1)} GB)`)

const describe = (loading: Loading, now: number): string => {
  const { model, startedAt, deadlineMs } = loading
  return `${model}${sizeText(loading)} was not in memory after ${Math.round((now - startedAt) / 1000)} s of ${Math.round(deadlineMs / 1000)} s (limits.load_timeout_min)`
}

export const runtimeLogic = flat<RuntimeContext, RuntimeEvent, RuntimeInput>(runtimeChart, {
  context: (input) => ({
    ...input,
    resident: [],
    loadedAt: new Map(),
    unloadedAt: new Map(),
    evicted: { keys: new Set(), until: 0 },
    loading: undefined,
  }),
  delays: { loadDeadline: ({ loading }) => loading?.deadlineMs ?? 0 },
  actions: {
    beginLoad: (context, event) => {
      const { model, evicts, deadlineMs, sizeGb, contextTokens } = event as Of<'model.load'>
      const now = context.ports.now()
      context.loading = {
        model,
        evicts,
        deadlineMs,
        ...(sizeGb === undefined ? {} : { sizeGb }),
        startedAt: now,
        ...(contextTokens === undefined ? {} : { contextTokens }),
      }
      const gone = new Set(evicts.map(modelKey))
      context.evicted = { keys: gone, until: Number.POSITIVE_INFINITY }
      for (const by of evicts)
        context.ports.journal.record({ type: 'model.evicted', at: now, node: context.node.name, model: by, by: model })
      replaceResident(
        context,
        context.resident.filter(({ name }) => !gone.has(modelKey(name))),
      )
    },
    refuseLoad: ({ node }, event, api) => {
      const { model } = event as Of<'model.load'>
      api.send(address.dispatcher, {
        type: 'load.failed',
        node: node.name,
        model,
        message: 'another load is in progress',
      })
    },
    observe: (context, event) => {
      const { report, startedAt } = event as Of<'runtime.observed'>
      replaceResident(context, merged(context, report, startedAt))
    },
    configure: (context, event) => {
      context.node = (event as Of<'runtime.configure'>).node
    },
    forget: (context) => {
      context.resident = []
      context.loadedAt.clear()
    },
    tellLoaded: (context, _event, api) => {
      const { loading, node, ports } = context
      if (loading === undefined) return
      const now = ports.now()
      const tookMs = now - loading.startedAt
      const others = context.resident.filter(({ name }) => modelKey(name) !== modelKey(loading.model))
      const { contextTokens } = loading
      context.resident = [
        ...others,
        { name: loading.model, state: 'ready', ...(contextTokens === undefined ? {} : { contextTokens }) },
      ]
      context.loadedAt.set(modelKey(loading.model), now)
      context.evicted.until = now
      context.loading = undefined
      ports.journal.record({ type: 'load.finished', at: now, node: node.name, model: loading.model, tookMs })
      api.send(address.dispatcher, { type: 'load.finished', node: node.name, model: loading.model, tookMs })
      api.send(address.poller(node.name), { type: 'node.poll' })
    },
    tellFailed: (context, event, api) => {
      const { message, unsent } = event as Of<'load.broke'>
      failLoad(context, message, api, unsent)
    },
    tellTimedOut: (context, _event, api) => {
      if (context.loading !== undefined) failLoad(context, describe(context.loading, context.ports.now()), api)
    },
  },
  effects: {
    load: ({ node, loading, ports }, api, signal) => {
      if (loading === undefined) return
      const { model, evicts, contextTokens } = loading
      const tell = (event: RuntimeEvent) => {
        if (!signal.aborted) api.self.send(event)
      }
      ports.load(node, model, { evicts, ...(contextTokens === undefined ? {} : { contextTokens }) }, signal).then(
        () => tell({ type: 'load.done' }),
        (error: unknown) => {
          const message = error instanceof Error ? error.message : String(error)
          const unsent = error instanceof NodeFault && isUnsent(error.failure) ? { unsent: error.failure.class } : {}
          tell({ type: 'load.broke', message, ...unsent })
        },
      )
    },
  },
})

const failLoad = (
  context: RuntimeContext,
  message: string,
  api: Pick<Api<RuntimeEvent>, 'send'>,
  unsent?: Failure['class'],
): void => {
  const { loading, node, ports } = context
  if (loading === undefined) return
  const now = ports.now()
  const tookMs = now - loading.startedAt
  context.evicted.until = now
  context.loading = undefined
  ports.journal.record({ type: 'load.failed', at: now, node: node.name, model: loading.model, tookMs, message })
  api.send(address.dispatcher, {
    type: 'load.failed',
    node: node.name,
    model: loading.model,
    message,
    ...(unsent === undefined ? {} : { unsent }),
  })
  api.send(address.node(node.name), {
    type: 'attempt.failed',
    failure: { class: unsent ?? 'status', message, bytes: 0, elapsedMs: tookMs },
  })
}
