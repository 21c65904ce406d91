import type { Connection } from './http1-connection'
import type { Target } from './http1-request'

/** Idle connections by origin. Newest first: the rest can grow old and be closed. */
export interface IdlePool {
  take(target: Target): Connection | undefined
  put(connection: Connection, reusableMs: number): void
  forget(connection: Connection): void
  /** Closes the idle connections of one origin, or all. */
  close(origin?: string): void
  count(): number
}

export const createIdlePool = (idleMs: () => number, maxPerOrigin: number, now: () => number): IdlePool => {
  /** Per origin from oldest to newest. One that runs empty stays for the next connection, until the sweep. */
  const stacks = new Map<string, Connection[]>()
  let sweep: ReturnType<typeof setTimeout> | undefined

  const closeExpired = (): void => {
    sweep = undefined
    const time = now()
    for (const [origin, stack] of stacks) {
      for (const connection of [...stack]) if (connection.reusableUntil < time) connection.end()
      if (stack.length === 0) stacks.delete(origin)
    }
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
      while (stack && stack.length > 0) {
        const connection = stack.pop() as Connection
        if (connection.reusableUntil >= now()) return connection
        connection.end()
      }
      return undefined
    },
    put(connection, reusableMs) {
      connection.reusableUntil = now() + Math.min(idleMs(), reusableMs)
      const { origin } = connection.target
      const stack = stacks.get(origin)
      if (!stack) stacks.set(origin, [connection])
      else if (stack.push(connection) > maxPerOrigin) stack[0]?.end()
      planSweep()
    },
    forget(connection) {
      const stack = stacks.get(connection.target.origin)
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
