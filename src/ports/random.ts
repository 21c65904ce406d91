/** Randomness and identifiers, so that a simulation repeats exactly from its seed. */
export interface Random {
  /** 0 <= x < 1 */
  next(): number
  /** A short id: `prefix_` and 12 characters of [0-9a-z]. */
  id(prefix: string): string
}
