import { SlotMap } from '../domain/slot-map'

/** A map that keeps the newest `limit` entries. Every key is set once. */
export interface Recent<V> {
  set(key: string, value: V): void
  get(key: string): V | undefined
  /** Oldest first. */
  values(): IterableIterator<V>
}

/**
 * The order stands in a ring beside the map: asking a map for its first key, after many deletions in front of it, walks
 * over all that was deleted there.
 */
export const createRecent = <V>(limit: number): Recent<V> => {
  const entries = new SlotMap<V>()
  const ring: string[] = []
  let oldest = 0

  return {
    set: (key, value) => {
      entries.set(key, value)
      if (ring.length < limit) {
        ring.push(key)
        return
      }
      entries.delete(ring[oldest] as string)
      ring[oldest] = key
      oldest = (oldest + 1) % limit
    },
    get: (key) => entries.get(key),
    values: () => entries.values(),
  }
}
