import { NodeFault } from '../ports/node-gateway'

/**
 * Asks again every `everyMs` until the answer is true. When the signal fires it rejects with a `NodeFault` that says
 * what was waited for ("m to leave the memory of …").
 */
export const until = async (
  what: string,
  holds: () => Promise<boolean>,
  everyMs: number,
  signal: AbortSignal,
): Promise<void> => {
  const startedAt = performance.now()
  while (!(await holds())) {
    await pause(everyMs, signal)
    if (!signal.aborted) continue
    const elapsedMs = Math.round(performance.now() - startedAt)
    const message = `Waited ${elapsedMs} ms for ${what}, then gave up`
    throw new NodeFault({ class: 'first_byte_timeout', message, bytes: 0, elapsedMs })
  }
}

/** Ends early, without an error, when the signal fires. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
