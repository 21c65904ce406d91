import type { Random } from '../ports/random'

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'

/** A small generator (mulberry32) that repeats exactly from its seed. */
export const seededRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    id: (prefix) =>
      `${prefix}_${Array.from({ length: 12 }, () => ALPHABET[Math.floor(next() * ALPHABET.length)]).join('')}`,
  }
}
