/**
 * A map for entries that come and go with every request, in the order in which they came.
 *
 * A `Map` of the engine that loses and gains entries all the time leaves a trail of abandoned tables, each of which keeps
 * the entries that it had and the table that replaced it: once one of them has grown old, a minor collection frees
 * nothing that was ever in the map. Here the engine's map holds only numbers; the values stand in slots that are emptied.
 */
export class SlotMap<V> {
  readonly #slots = new Map<string, number>()
  readonly #values: (V | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#slots.size
  }

  get(key: string): V | undefined {
    const slot = this.#slots.get(key)
    return slot === undefined ? undefined : this.#values[slot]
  }

  has(key: string): boolean {
    return this.#slots.has(key)
  }

  set(key: string, value: V): this {
    const known = this.#slots.get(key)
    const slot = known ?? this.#free.pop() ?? this.#values.length
    if (known === undefined) this.#slots.set(key, slot)
    this.#values[slot] = value
    return this
  }

  delete(key: string): boolean {
    const size = this.#slots.size
    this.take(key)
    return this.#slots.size < size
  }

  /** Gives the value and deletes it. */
  take(key: string): V | undefined {
    const slot = this.#slots.get(key)
    if (slot === undefined) return undefined
    const value = this.#values[slot]
    this.#slots.delete(key)
    this.#values[slot] = undefined
    this.#free.push(slot)
    return value
  }

  clear(): void {
    this.#slots.clear()
    this.#values.length = 0
    this.#free.length = 0
  }

  keys(): MapIterator<string> {
    return this.#slots.keys()
  }

  *values(): Generator<V> {
    for (const slot of this.#slots.values()) yield this.#values[slot] as V
  }

  *entries(): Generator<[string, V]> {
    for (const [key, slot] of this.#slots) yield [key, this.#values[slot] as V]
  }

  [Symbol.iterator](): Generator<[string, V]> {
    return this.entries()
  }
}
