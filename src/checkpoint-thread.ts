import type { Checkpoints } from './store/checkpoints'

/**
 * Checkpoints in a thread of their own, which begins with the first. Where it cannot be had or breaks, nobody hears of
 * it: the store's own checkpoints, far apart, then do the work.
 */
export const createCheckpointThread = (): Checkpoints => {
  let thread: Worker | undefined
  let isBusy = false
  let isBroken = false

  const begin = (): Worker => {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url).href, { smol: true })
    worker.unref()
    worker.onmessage = () => {
      isBusy = false
    }
    worker.onerror = () => {
      isBroken = true
      worker.terminate()
    }
    return worker
  }

  return {
    ask(path) {
      if (isBusy || isBroken) return
      isBusy = true
      thread ??= begin()
      thread.postMessage(path)
    },
    close() {
      isBroken = true
      thread?.terminate()
    },
  }
}
