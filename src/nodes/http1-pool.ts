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
  /** Per origin from oldest to newest. An origin without idle connections has no entry. */
  const stacks = new Map<string, Connection[]>()
  let sweep: ReturnType<typeof setTimeout> | undefined

  const remove = (stack: Connection[], index: number): void => {
    const [connection] = stack.splice(index, 1)
    if (connection && stack.length === 0) stacks.delete(connection.target.origin)
  }

  const closeExpired = (): void => {
    sweep = undefined
    const time = now()
    for (const connection of [...stacks.values()].flat()) if (connection.reusableUntil < time) connection.end()
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
        const connection = stack[stack.length - 1] as Connection
        remove(stack, stack.length - 1)
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
      if (stack && index !== -1) remove(stack, index)
    },
    close(origin) {
      const closing = origin === undefined ? [...stacks.values()].flat() : [...(stacks.get(origin) ?? [])]
      for (const connection of closing) connection.end()
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
