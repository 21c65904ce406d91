import type { Clock } from '../ports/clock'

interface Timer {
  readonly at: number
  readonly order: number
  run: (() => void) | undefined
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/**
 * Time that moves only when told, and stops at every deadline on the way. XState's own simulated clock jumps: a timer
 * that re-arms fires once however far it is moved.
 */
export class VirtualClock implements Clock {
  #now: number
  #order = 0
  readonly #heap: Timer[] = []

  constructor(startAt = 1_800_000_000_000) {
    this.#now = startAt
  }

  now(): number {
    return this.#now
  }

  setTimeout(run: () => void, ms: number): unknown {
    const timer: Timer = { at: this.#now + Math.max(0, ms), order: this.#order++, run }
    this.#push(timer)
    return timer
  }

  clearTimeout(handle: unknown): void {
    if (handle !== undefined) (handle as Timer).run = undefined
  }

  /** Runs everything that is due within `ms`, letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await settle()
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#now = Math.max(this.#now, next.at)
      const { run } = next
      next.run = undefined
      run?.()
      await settle()
    }
    this.#now = end
  }

  /** Runs the one thing that is due next, whenever that is, and lets promises settle; false when nothing ever is. */
  async step(): Promise<boolean> {
    await settle()
    const next = this.#next(Number.POSITIVE_INFINITY)
    if (next === undefined) return false
    this.#now = Math.max(this.#now, next.at)
    const { run } = next
    next.run = undefined
    run?.()
    await settle()
    return true
  }

  #next(end: number): Timer | undefined {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || first.at > end) return undefined
      this.#pop()
      if (first.run !== undefined) return first
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(timer)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as Timer
      if (!isBefore(timer, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1
      if (!isBefore(heap[child] as Timer, last)) break
      heap[at] = heap[child] as Timer
      at = child
    }
    heap[at] = last
  }
}

/** Promise chains of the actors are a few links long. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve()
}
