import type { Connection } from './http1-connection'
import type { Target } from './http1-request'

/**
 * A node that hangs up this soon after an answer (ms) does so after others too, without a word in their heads: llama-server
 * after each streamed one. A request that comes in between would be written into a dead connection, and with a queue
 * before the node that is every request.
 */
const HASTY_WITHIN_MS = 250
/** So long (ms) its connections are not taken again before they have outlived that, counted from the last time it did so. */
const HASTY_FOR_MS = 600_000

/** Idle connections by origin. Newest first: the rest can grow old and be closed. */
export interface IdlePool {
  take(target: Target): Connection | undefined
  put(connection: Connection, reusableMs: number): void
  /** It is closed; `byNode`: it was the node that hung up. */
  forget(connection: Connection, byNode: boolean): void
  /** Closes the idle connections of one origin, or all. */
  close(origin?: string): void
  count(): number
}

export const createIdlePool = (idleMs: () => number, maxPerOrigin: number, now: () => number): IdlePool => {
  /** Per origin from oldest to newest. One that runs empty stays for the next connection, until the sweep. */
  const stacks = new Map<string, Connection[]>()
  /** Nodes that hang up right after their answers, and until when they are taken to do so. */
  const hasty = new Map<string, number>()
  let sweep: ReturnType<typeof setTimeout> | undefined

  const closeExpired = (): void => {
    sweep = undefined
    const time = now()
    for (const [origin, stack] of stacks) {
      for (const connection of [...stack]) if (connection.reusableUntil < time) connection.end()
      if (stack.length === 0) stacks.delete(origin)
    }
    for (const [origin, until] of hasty) if (until < time) hasty.delete(origin)
    if (stacks.size > 0) planSweep()
  }

  /** One timer for all, only while there is something to close; it does not keep the process alive. */
  const planSweep = (): void => {
    if (sweep) return
    sweep = setTimeout(closeExpired, idleMs())
    sweep.unref()
  }

  const pool: IdlePool = {
    take({ origin }) {
      const stack = stacks.get(origin)
      if (!stack) return undefined
      const time = now()
      const releasedBy = (hasty.get(origin) ?? 0) > time ? time - HASTY_WITHIN_MS : Number.POSITIVE_INFINITY
      let next = stack.length - 1
      for (let one = stack[next]; one; one = stack[--next]) {
        if (one.releasedAt > releasedBy) continue
        stack.splice(next, 1)
        if (one.reusableUntil >= time) return one
        one.end()
      }
      return undefined
    },
    put(connection, reusableMs) {
      connection.releasedAt = now()
      connection.reusableUntil = connection.releasedAt + Math.min(idleMs(), reusableMs)
      const { origin } = connection.target
      const stack = stacks.get(origin)
      if (!stack) stacks.set(origin, [connection])
      else if (stack.push(connection) > maxPerOrigin) stack[0]?.end()
      planSweep()
    },
    forget(connection, byNode) {
      const { origin } = connection.target
      const time = now()
      if (byNode && time - connection.releasedAt < HASTY_WITHIN_MS) hasty.set(origin, time + HASTY_FOR_MS)
      const stack = stacks.get(origin)
      const index = stack ? stack.lastIndexOf(connection) : -1
      if (stack && index !== -1) stack.splice(index, 1)
    },
    close(origin) {
      for (const one of origin === undefined ? [...stacks.keys()] : [origin]) {
        for (const connection of [...(stacks.get(one) ?? [])]) connection.end()
        stacks.delete(one)
      }
      if (stacks.size === 0 && sweep) {
        clearTimeout(sweep)
        sweep = undefined
      }
    },
    count() {
      let count = 0
      for (const stack of stacks.values()) count += stack.length
      return count
    },
  }
  return pool
}
