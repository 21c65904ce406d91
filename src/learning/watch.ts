import type { ParallelismWatch, TimeInside } from '../ports/samples'
import { createFlights, type Flight, type Flights } from './flights'
import { createLatest } from './learned'
import { createParallelism, type LearnedParallelism, type ParallelismEstimate } from './parallelism'
import { SlotMap } from '../domain/slot-map'

interface Engine {
  readonly node: string
  readonly flights: Flights
  readonly estimate: ParallelismEstimate
}

/** A request and where it is. */
interface Place {
  readonly engine: Engine
  readonly flight: Flight
}

export interface Watch extends ParallelismWatch {
  /** What is to outlive the process. */
  learned(node: string, model: string): LearnedParallelism | undefined
  restore(node: string, model: string, known: LearnedParallelism): void
  forget(node: string): void
}

/** Every node:model that requests went to; `keyOf` names the pair, at most `limit` are kept, the idle longest goes first. */
export const createWatch = (keyOf: (node: string, model: string) => string, limit: number): Watch => {
  const engines = createLatest<Engine>(limit)
  /** Where each running request is. */
  const whereabouts = new SlotMap<Place>()
  const marks = new Map<string, { version: number }>()

  const mark = (node: string): { version: number } => {
    const known = marks.get(node) ?? { version: 0 }
    marks.set(node, known)
    return known
  }

  const open = (node: string, model: string, known?: LearnedParallelism): Engine => {
    const key = keyOf(node, model)
    return engines.set(key, engines.get(key) ?? { node, flights: createFlights(), estimate: createParallelism(known) })
  }

  const ended = (request: string, at: number): TimeInside | undefined => {
    const place = whereabouts.take(request)
    if (place === undefined) return undefined
    place.engine.estimate.ended(request)
    return place.engine.flights.ended(place.flight, at)
  }

  const estimateOf = (node: string, model: string): ParallelismEstimate | undefined =>
    engines.get(keyOf(node, model))?.estimate

  return {
    sent: (request) => {
      // It is at one engine at a time.
      ended(request.request, request.at)
      const engine = open(request.node, request.model)
      const flight = engine.flights.sent(request, engine.estimate.assumed)
      engine.estimate.sent(request.request, engine.flights.size)
      whereabouts.set(request.request, { engine, flight })
    },

    firstByte: (request, at) => {
      const place = whereabouts.get(request)
      if (place === undefined) return
      const { engine, flight } = place
      const observation = engine.flights.firstByte(flight, at)
      if (observation === undefined) return
      const { slots } = engine.estimate
      engine.estimate.observe(observation)
      if (engine.estimate.slots !== slots) mark(engine.node).version += 1
    },

    ended,

    of: (node, model) => estimateOf(node, model)?.view(),
    slots: (node, model) => estimateOf(node, model)?.slots,
    mark,
    trying: (node, model, request) => open(node, model).estimate.trying(request),
    learned: (node, model) => estimateOf(node, model)?.learned(),
    restore: (node, model, known) => void open(node, model, known),
    forget: (node) => {
      engines.deleteWhere((engine) => engine.node === node)
      mark(node).version += 1
    },
  }
}
