import { modelKey } from '../domain/job'
import { encode } from './bytes'
import type { Span } from './json/cursor'
import type { BodyFacts } from './peek'

/**
 * Bytes that are looked at in the system text and in the first user turn. Each has its own share: agents share one long
 * system text, and a common bound would make all their conversations one.
 */
const shareBytes = 4_096

const prime = 0x01000193

/** FNV-1a over two lanes with unlike seeds: 64 bits without big integers. Not for secrets. */
const hash = (pieces: readonly Uint8Array[]): string => {
  let low = 0x811c9dc5
  let high = 0x050c5d1f
  for (const piece of pieces) {
    // By index: this runs for every request, and an iterator costs several times the arithmetic.
    for (let at = 0, end = piece.length; at < end; at++) {
      const byte = piece[at] as number
      low = Math.imul(low ^ byte, prime)
      high = Math.imul(high ^ byte ^ 0x5a, prime)
    }
    // Keeps "ab" + "c" apart from "a" + "bc".
    low = Math.imul(low ^ 0xff, prime)
    high = Math.imul(high ^ 0xff, prime)
  }
  return [high, low].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('')
}

/** A hash of a text, 16 hex digits: for identifiers that must be stable, not for secrets. */
export const hashText = (text: string): string => hash([encode(text)])

/** The same for every turn of one conversation with one model; undefined when nobody has said anything yet. */
export const sessionOf = (facts: BodyFacts): string | undefined => {
  const { system, user } = facts.opening
  if (user === undefined || user.end === user.start) return undefined
  const share = (span: Span | undefined): Uint8Array =>
    span === undefined ? new Uint8Array() : facts.body.subarray(span.start, Math.min(span.end, span.start + shareBytes))
  return `auto_${hash([encode(modelKey(facts.model)), share(system), share(user)])}`
}
