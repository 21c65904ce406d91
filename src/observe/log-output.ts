import { writeSync } from 'node:fs'

const STDOUT = 1
/** Lines are gathered for so long, in ms, or until they are as much as this. */
const GATHER_MS = 20
const BATCH_CHARACTERS = 64 * 1024
/** A reader that does not keep up is offered the rest again after so many ms. */
const RETRY_MS = 5
/** Characters that wait for a reader that stands still, such as a pager; beyond it lines are counted and dropped. */
const MOST_WAITING = 4 * 1024 * 1024
/** How long the end of the process waits for such a reader, in ms. */
const LAST_WAIT_MS = 1_000

export interface LogOutput {
  write(line: string): void
  /** Offers whatever is pending to the reader; what it does not take now it is offered again. */
  flush(): void
  /** Lines that were dropped since this was last asked, once the reader takes more again; 0 before. */
  dropped(): number
}

let shared: LogOutput | undefined

/**
 * Standard output for whole lines. Lines of a few milliseconds share one write: under load a system call a line is most
 * of what logging costs. Nothing waits for the reader: a pager that stands still must not stop the requests.
 */
export const standardOutput = (): LogOutput => {
  shared ??= createStandardOutput()
  return shared
}

const createStandardOutput = (): LogOutput => {
  let pending = ''
  /** Offered, and not taken yet. */
  let unsent: Uint8Array | undefined
  let lost = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  const offer = (): void => {
    if (unsent !== undefined) unsent = rest(unsent)
    if (unsent !== undefined || pending === '') return
    const batch = pending
    pending = ''
    unsent = rest(batch)
  }
  const flush = (): void => {
    offer()
    if (unsent !== undefined) plan(RETRY_MS)
  }
  const plan = (ms: number): void => {
    if (timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      flush()
    }, ms)
  }
  process.on('exit', () => {
    offer()
    for (let waited = 0; unsent !== undefined && waited < LAST_WAIT_MS; waited += RETRY_MS) {
      Bun.sleepSync(RETRY_MS)
      offer()
    }
  })

  return {
    write: (line) => {
      if (pending.length > MOST_WAITING) {
        lost += 1
        return
      }
      pending += line
      plan(GATHER_MS)
      if (pending.length > BATCH_CHARACTERS && unsent === undefined) flush()
    },
    flush,
    dropped: () => {
      if (pending.length > MOST_WAITING) return 0
      const count = lost
      lost = 0
      return count
    },
  }
}

/** What the reader did not take. Of a reader that went away (`fleet serve | head`) nothing is left to say. */
const rest = (data: string | Uint8Array): Uint8Array | undefined => {
  let taken = 0
  try {
    taken = writeSync(STDOUT, data as Uint8Array)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return undefined
  }
  if (taken >= (typeof data === 'string' ? Buffer.byteLength(data) : data.length)) return undefined
  return (typeof data === 'string' ? Buffer.from(data) : data).subarray(taken)
}
