import { modelKey } from '../domain/job'
import { encode } from './bytes'
import type { Span } from './json/cursor'
import type { BodyFacts } from './body-facts'

/**
 * Bytes that are looked at in the system text and in the first user turn. Each has its own share: agents share one long
 * system text, and a common bound would make all their conversations one.
 */
const shareBytes = 4_096

const prime = 0x01000193

/** A span of nothing, for what a conversation does not have. */
const nothing: Span = { start: 0, end: 0 }

/** FNV-1a over two lanes with unlike seeds: 64 bits without big integers. Not for secrets. */
interface Lanes {
  low: number
  high: number
}

const feed = (lanes: Lanes, bytes: Uint8Array, start: number, end: number): void => {
  let { low, high } = lanes
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    low = Math.imul(low ^ byte, prime)
    high = Math.imul(high ^ byte ^ 0x5a, prime)
  }
  // Keeps "ab" + "c" apart from "a" + "bc".
  lanes.low = Math.imul(low ^ 0xff, prime)
  lanes.high = Math.imul(high ^ 0xff, prime)
}

/** The same for prompts, of which every request has one: four bytes at a time. */
const feedPrompt = (lanes: Lanes, bytes: Uint8Array, start: number, end: number): void => {
  let { low, high } = lanes
  let at = start
  for (const last = end - 4; at <= last; at += 4) {
    const word =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    low = Math.imul(low ^ word, prime)
    high = Math.imul(high ^ word ^ 0x5a5a5a5a, prime)
    // A product carries upwards only: what the upper bytes of a word said has to come down again.
    low ^= low >>> 15
    high ^= high >>> 13
  }
  lanes.low = low
  lanes.high = high
  feed(lanes, bytes, at, end)
}

const feedText = (lanes: Lanes, text: string): void => {
  const bytes = encode(text)
  feed(lanes, bytes, 0, bytes.length)
}

const start = (): Lanes => ({ low: 0x811c9dc5, high: 0x050c5d1f })

const hex = (lane: number): string => (lane >>> 0).toString(16).padStart(8, '0')

const digest = ({ low, high }: Lanes): string => hex(high) + hex(low)

/** A hash of a text, 16 hex digits: for identifiers that must be stable, not for secrets. */
export const hashText = (text: string): string => {
  const lanes = start()
  feedText(lanes, text)
  return digest(lanes)
}

/** The same for every turn of one conversation with one model; undefined when nobody has said anything yet. */
export const sessionOf = (facts: BodyFacts): string | undefined => {
  const { system, user } = facts.opening
  if (user === undefined || user.end === user.start) return undefined
  const lanes = start()
  feedText(lanes, modelKey(facts.model))
  for (const { start: from, end } of [system ?? nothing, user])
    feedPrompt(lanes, facts.body, from, Math.min(end, from + shareBytes))
  return `auto_${digest(lanes)}`
}
