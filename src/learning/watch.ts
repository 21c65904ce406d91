import type { ParallelismWatch } from '../ports/samples'
import { createFlights, type Flights } from './flights'
import { createParallelism, type LearnedParallelism, type ParallelismEstimate } from './parallelism'
import { SlotMap } from '../domain/slot-map'

interface Engine {
  readonly node: string
  readonly flights: Flights
  readonly estimate: ParallelismEstimate
}

export interface Watch extends ParallelismWatch {
  /** What is to outlive the process. */
  learned(node: string, model: string): LearnedParallelism | undefined
  restore(node: string, model: string, known: LearnedParallelism): void
  forget(node: string): void
}

/** Every node:model that requests went to; `keyOf` names the pair, at most `limit` are kept, the idle longest goes first. */
export const createWatch = (keyOf: (node: string, model: string) => string, limit: number): Watch => {
  const engines = new Map<string, Engine>()
  /** Where each running request is. */
  const whereabouts = new SlotMap<Engine>()

  const marks = new Map<string, { version: number }>()

  const mark = (node: string): { version: number } => {
    const known = marks.get(node) ?? { version: 0 }
    marks.set(node, known)
    return known
  }

  const keep = (key: string, engine: Engine): Engine => {
    engines.delete(key)
    engines.set(key, engine)
    const oldest = engines.keys().next()
    if (engines.size > limit && !oldest.done) engines.delete(oldest.value)
    return engine
  }

  const open = (node: string, model: string, known?: LearnedParallelism): Engine => {
    const key = keyOf(node, model)
    const fresh = () => ({ node, flights: createFlights(), estimate: createParallelism(known) })
    return keep(key, engines.get(key) ?? fresh())
  }

  const estimateOf = (node: string, model: string): ParallelismEstimate | undefined =>
    engines.get(keyOf(node, model))?.estimate

  return {
    sent: (request) => {
      const engine = open(request.node, request.model)
      engine.flights.sent(request, engine.estimate.assumed)
      engine.estimate.sent(request.request, engine.flights.size)
      whereabouts.set(request.request, engine)
    },

    firstByte: (request, at) => {
      const engine = whereabouts.get(request)
      const observation = engine?.flights.firstByte(request, at)
      if (engine === undefined || observation === undefined) return
      const { slots } = engine.estimate
      engine.estimate.observe(observation)
      if (engine.estimate.slots !== slots) mark(engine.node).version += 1
    },

    ended: (request, at) => {
      const engine = whereabouts.get(request)
      whereabouts.delete(request)
      engine?.estimate.ended(request)
      return engine?.flights.ended(request, at)
    },

    of: (node, model) => estimateOf(node, model)?.view(),
    slots: (node, model) => estimateOf(node, model)?.slots,
    mark,
    trying: (node, model, request) => open(node, model).estimate.trying(request),
    learned: (node, model) => estimateOf(node, model)?.learned(),
    restore: (node, model, known) => void open(node, model, known),
    forget: (node) => {
      for (const [key, engine] of engines) if (engine.node === node) engines.delete(key)
      mark(node).version += 1
    },
  }
}
