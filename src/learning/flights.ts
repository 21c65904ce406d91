import type { Sent, TimeInside } from '../ports/samples'
import type { Writable } from '../domain/writable'
import { createWindow } from './percentile'

/** Waits for a first token that tell what is usual there. */
const USUAL_OF = 20
/** Nothing moves for longer than this multiple of a usual wait: whoever waits, waits for a slot. */
const STANDS_AFTER = 2

/** A request inside; what it holds is its engine's. */
export interface Flight {
  readonly request: string
  readonly sentAt: number
  readonly streams: boolean
  /** Others were inside with it. */
  overlapped: boolean
  /** Where it stands in the list of those inside. */
  index: number
  /** Ends that must come before the engine can take it up, as far as its slots are known. */
  ahead: number
  takenUpAt: number
  firstAt: number | undefined
  /** What `area` was at its first byte. */
  areaAtFirst: number
  /** The most answers that were being generated while it stood without a first byte. */
  stood: number | undefined
}

/** A first byte, and what was going on in the engine. */
export interface Observation {
  readonly request: string
  readonly overlapped: boolean
  /** Answers that are being generated now, this one included. */
  readonly together: number
  /** The most answers that were being generated while it stood still. */
  readonly stood?: number
}

/** What is inside one node:model: sent, first byte, end. All times in ms since the epoch. */
export interface Flights {
  /** `slots`: how many are known to run at once, where that is known. */
  sent(request: Pick<Sent, 'request' | 'at' | 'streams'>, slots?: number): Flight
  /** Undefined for an answer that comes whole: its first byte is its last. */
  firstByte(flight: Flight, at: number): Observation | undefined
  /** Once for each that was sent. */
  ended(flight: Flight, at: number): TimeInside
  readonly size: number
}

/**
 * Follows the requests inside one node:model. An answer that is streamed is being generated from its first byte to its
 * end. One that comes whole may be at any time, so nothing is concluded while such a one is inside.
 *
 * A request *stands* when others are being generated and, for longer than twice the usual wait for a first token, nobody
 * begins and nobody ends: it waits for a slot.
 */
export const createFlights = (): Flights => {
  /** In no order: the last one takes the place of one that ends. */
  const inside: Flight[] = []
  /** 75th percentile: prompts differ, and a short one must not make the others seem to stand. */
  const waits = createWindow(undefined, USUAL_OF)
  /** Those that have ends before them. */
  let behind = 0
  let generating = 0
  let silent = 0
  /** Running requests x ms, so that a difference over a span is their mean number. */
  let area = 0
  let areaAt = 0
  let movedAt = 0
  let endedAt = 0

  const advance = (at: number): void => {
    area += (generating + silent) * Math.max(0, at - areaAt)
    areaAt = at
  }

  /** An answer ends: since the last movement, who stood? */
  const noteStanding = (at: number): void => {
    const usual = waits.p75()
    if (usual === undefined || generating === 0 || silent > 0 || at - movedAt <= STANDS_AFTER * usual) return
    for (const flight of inside) {
      if (flight.firstAt !== undefined || at - flight.sentAt <= STANDS_AFTER * usual) continue
      flight.stood = Math.max(flight.stood ?? 0, generating)
    }
  }

  const leave = ({ index, ahead }: Flight): void => {
    if (ahead > 0) behind -= 1
    const last = inside.pop()
    if (last === undefined || last.index === index) return
    last.index = index
    inside[index] = last
  }

  /** One place less before those that are behind. */
  const letForward = (at: number): void => {
    for (const flight of inside) {
      if (flight.ahead < 1) continue
      flight.ahead -= 1
      if (flight.ahead > 0) continue
      behind -= 1
      flight.takenUpAt = at
    }
  }

  return {
    sent: ({ request, at, streams }, slots = Number.POSITIVE_INFINITY) => {
      advance(at)
      const index = inside.length
      const first = inside[0]
      if (index === 1 && first !== undefined) first.overlapped = true
      const ahead = Math.max(0, index + 1 - slots)
      const flight: Flight = {
        request,
        sentAt: at,
        streams,
        overlapped: index > 0,
        index,
        ahead,
        takenUpAt: at,
        firstAt: undefined,
        areaAtFirst: 0,
        stood: undefined,
      }
      inside.push(flight)
      if (ahead > 0) behind += 1
      if (!streams) silent += 1
      return flight
    },

    firstByte: (flight, at) => {
      if (!flight.streams || flight.firstAt !== undefined) return undefined
      advance(at)
      generating += 1
      movedAt = at
      flight.firstAt = at
      flight.areaAtFirst = area
      const released = Math.max(flight.sentAt, endedAt)
      waits.add(at - released)
      // It stood until the last end; one that began before its turn had come did not wait for it.
      if (flight.stood !== undefined) flight.takenUpAt = released
      else if (flight.ahead > 0) flight.takenUpAt = flight.sentAt
      const { request, overlapped, stood } = flight
      const observation: Writable<Observation> = { request, overlapped, together: generating }
      if (stood !== undefined) observation.stood = stood
      return observation
    },

    ended: (flight, at) => {
      advance(at)
      leave(flight)
      if (flight.firstAt !== undefined) {
        noteStanding(at)
        generating -= 1
        movedAt = at
      }
      if (!flight.streams) silent -= 1
      endedAt = at
      if (behind > 0) letForward(at)
      const decodeMs = flight.firstAt === undefined ? 0 : at - flight.firstAt
      const time: Writable<TimeInside> = { waitedMs: Math.min(at, flight.takenUpAt) - flight.sentAt }
      if (decodeMs > 0) time.concurrency = (area - flight.areaAtFirst) / decodeMs
      return time
    },

    get size() {
      return inside.length
    },
  }
}
