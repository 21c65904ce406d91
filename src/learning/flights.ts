import type { Sent, TimeInside } from '../ports/samples'
import { SlotMap } from '../domain/slot-map'

/** Waits for a first token that tell what is usual there. */
const USUAL_OF = 20
/** Nothing moves for longer than this multiple of a usual wait: whoever waits, waits for a slot. */
const STANDS_AFTER = 2

interface Flight {
  readonly sentAt: number
  readonly streams: boolean
  /** Others were inside with it. */
  overlapped: boolean
  /** Ends that must come before the engine can take it up, as far as its slots are known. */
  ahead: number
  takenUpAt: number
  firstAt?: number
  /** What `area` was at its first byte. */
  areaAtFirst: number
  /** The most answers that were being generated while it stood without a first byte. */
  stood?: number
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
  sent(request: Pick<Sent, 'request' | 'at' | 'streams'>, slots?: number): void
  /** Undefined for an answer that comes whole: its first byte is its last. */
  firstByte(request: string, at: number): Observation | undefined
  ended(request: string, at: number): TimeInside | undefined
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
  const inside = new SlotMap<Flight>()
  const waits: number[] = []
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

  /** 75th percentile: prompts differ, and a short one must not make the others seem to stand. */
  const usualWait = (): number | undefined => [...waits].sort((a, b) => a - b)[Math.floor(0.75 * waits.length)]

  /** An answer ends: since the last movement, who stood? */
  const noteStanding = (at: number): void => {
    const usual = usualWait()
    if (usual === undefined || generating === 0 || silent > 0) return
    for (const flight of inside.values()) {
      if (flight.firstAt !== undefined || at - Math.max(movedAt, flight.sentAt) <= STANDS_AFTER * usual) continue
      flight.stood = Math.max(flight.stood ?? 0, generating)
    }
  }

  return {
    sent: ({ request, at, streams }, slots = Number.POSITIVE_INFINITY) => {
      advance(at)
      const overlapped = inside.size > 0
      if (inside.size === 1) for (const flight of inside.values()) flight.overlapped = true
      const ahead = Math.max(0, inside.size + 1 - slots)
      inside.set(request, { sentAt: at, streams, overlapped, ahead, takenUpAt: at, areaAtFirst: 0 })
      if (!streams) silent += 1
    },

    firstByte: (request, at) => {
      const flight = inside.get(request)
      if (flight === undefined || !flight.streams || flight.firstAt !== undefined) return undefined
      advance(at)
      generating += 1
      movedAt = at
      flight.firstAt = at
      flight.areaAtFirst = area
      const released = Math.max(flight.sentAt, endedAt)
      waits.push(at - released)
      if (waits.length > USUAL_OF) waits.shift()
      // It stood until the last end; one that began before its turn had come did not wait for it.
      if (flight.stood !== undefined) flight.takenUpAt = released
      else if (flight.ahead > 0) flight.takenUpAt = flight.sentAt
      return {
        request,
        overlapped: flight.overlapped,
        together: generating,
        ...(flight.stood === undefined ? {} : { stood: flight.stood }),
      }
    },

    ended: (request, at) => {
      const flight = inside.get(request)
      if (flight === undefined) return undefined
      advance(at)
      inside.delete(request)
      if (flight.firstAt !== undefined) {
        noteStanding(at)
        generating -= 1
        movedAt = at
      }
      if (!flight.streams) silent -= 1
      endedAt = at
      for (const other of inside.values()) {
        if (other.ahead < 1) continue
        other.ahead -= 1
        if (other.ahead < 1) other.takenUpAt = at
      }
      const decodeMs = flight.firstAt === undefined ? 0 : at - flight.firstAt
      return {
        waitedMs: Math.min(at, flight.takenUpAt) - flight.sentAt,
        ...(decodeMs > 0 ? { concurrency: (area - flight.areaAtFirst) / decodeMs } : {}),
      }
    },

    get size() {
      return inside.size
    },
  }
}
