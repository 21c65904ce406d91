import { modelKey } from '../src/domain/job'
import type { NodeDescription, NodeReport, ResidentModel } from '../src/domain/node'
import type { Journal } from '../src/ports/journal'
import type { LoadOptions } from '../src/ports/node-gateway'
import { type Chart, flat } from './flat'
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
  readonly contextTokens?: number
}

export interface RuntimeContext {
  readonly node: NodeDescription
  readonly ports: RuntimePorts
  /** What is in the node's memory, by its last report and by loads that ended since. */
  resident: readonly ResidentModel[]
  /** When our own loads ended, so that a report that began before cannot take them back. */
  readonly loadedAt: Map<string, number>
  loading: Loading | undefined
}

export type RuntimeInput = Pick<RuntimeContext, 'node' | 'ports'>

/** Keeps what one node has in memory and carries out loads, one at a time; a load outlives whoever asked for it. */
export const runtimeChart = {
  id: 'runtime',
  initial: 'steady',
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

/** Models in the report, and those of ours that ended loading after the report began. */
const merged = (
  { resident, loadedAt }: RuntimeContext,
  report: NodeReport,
  startedAt: number,
): readonly ResidentModel[] => {
  const seen = new Set(report.resident.map(({ name }) => modelKey(name)))
  const fresh = resident.filter(
    ({ name }) => !seen.has(modelKey(name)) && (loadedAt.get(modelKey(name)) ?? -1) >= startedAt,
  )
  return fresh.length === 0 ? report.resident : [...report.resident, ...fresh]
}

const describe = ({ model, startedAt, deadlineMs }: Loading, now: number): string =>
  `${model} was not in memory after ${Math.round((now - startedAt) / 1000)} s of ${Math.round(deadlineMs / 1000)} s (limits.load_timeout_min)`

export const runtimeLogic = flat<RuntimeContext, RuntimeEvent, RuntimeInput>(runtimeChart, {
  context: (input) => ({ ...input, resident: [], loadedAt: new Map(), loading: undefined }),
  delays: { loadDeadline: ({ loading }) => loading?.deadlineMs ?? 0 },
  actions: {
    beginLoad: (context, event) => {
      const { model, evicts, deadlineMs, contextTokens } = event as Of<'model.load'>
      const now = context.ports.now()
      context.loading = {
        model,
        evicts,
        deadlineMs,
        startedAt: now,
        ...(contextTokens === undefined ? {} : { contextTokens }),
      }
      const gone = new Set(evicts.map(modelKey))
      for (const by of evicts)
        context.ports.journal.record({ type: 'model.evicted', at: now, node: context.node.name, model: by, by: model })
      context.resident = context.resident.filter(({ name }) => !gone.has(modelKey(name)))
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
      context.resident = merged(context, report, startedAt)
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
      context.loading = undefined
      ports.journal.record({ type: 'load.finished', at: now, node: node.name, model: loading.model, tookMs })
      api.send(address.dispatcher, { type: 'load.finished', node: node.name, model: loading.model, tookMs })
      api.send(address.node(node.name), { type: 'node.poll' })
    },
    tellFailed: (context, event, api) => failLoad(context, (event as Of<'load.broke'>).message, api.send),
    tellTimedOut: (context, _event, api) => {
      if (context.loading !== undefined) failLoad(context, describe(context.loading, context.ports.now()), api.send)
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
        (error: unknown) =>
          tell({ type: 'load.broke', message: error instanceof Error ? error.message : String(error) }),
      )
    },
  },
})

const failLoad = (
  context: RuntimeContext,
  message: string,
  send: (to: string, event: { type: string; [key: string]: unknown }) => void,
): void => {
  const { loading, node, ports } = context
  if (loading === undefined) return
  const now = ports.now()
  const tookMs = now - loading.startedAt
  context.loading = undefined
  ports.journal.record({ type: 'load.failed', at: now, node: node.name, model: loading.model, tookMs, message })
  send(address.dispatcher, { type: 'load.failed', node: node.name, model: loading.model, message })
  send(address.node(node.name), {
    type: 'attempt.failed',
    failure: { class: 'status', message, bytes: 0, elapsedMs: tookMs },
  })
}
