import { writeSync } from 'node:fs'

const STDOUT = 1
/** Lines are gathered for so long, in ms, or until they are as much as this. */
const GATHER_MS = 20
const BATCH_CHARACTERS = 64 * 1024
/** How long a reader that does not keep up is given, in ms, before it is offered the rest again. */
const RETRY_MS = 5

export interface LogOutput {
  write(line: string): void
  /** Writes whatever is pending. */
  flush(): void
}

let shared: LogOutput | undefined

/**
 * Standard output for whole lines. Lines of a few milliseconds share one write: under load a system call a line is most
 * of what logging costs. Nothing is lost when the process ends in between, unless it is killed outright.
 */
export const standardOutput = (): LogOutput => {
  shared ??= createStandardOutput()
  return shared
}

const createStandardOutput = (): LogOutput => {
  let pending = ''
  const flush = (): void => {
    const batch = pending
    pending = ''
    if (batch !== '') writeAll(batch)
  }
  process.on('exit', flush)
  return {
    write: (line) => {
      if (pending === '') setTimeout(flush, GATHER_MS)
      pending += line
      if (pending.length > BATCH_CHARACTERS) flush()
    },
    flush,
  }
}

/** Waits for a slow reader, as a terminal or a file would: a line that is told is not lost. */
const writeAll = (text: string): void => {
  const length = Buffer.byteLength(text)
  for (let written = 0; written < length; ) {
    try {
      // What the reader takes at once, as it nearly always does, is not copied first.
      written += written === 0 ? writeSync(STDOUT, text) : writeSync(STDOUT, Buffer.from(text), written)
    } catch (error) {
      // A reader that went away (`fleet serve | head`) must not end the router.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      Bun.sleepSync(RETRY_MS)
    }
  }
}
