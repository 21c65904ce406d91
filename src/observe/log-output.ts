import { destination } from 'pino'

const STDOUT = 1
/** What one turn of the event loop says is written at once, or earlier when it is as much as this. */
const BATCH_CHARACTERS = 64 * 1024

export interface LogOutput {
  write(line: string): void
  /** Writes whatever is pending. */
  flush(): void
}

let shared: LogOutput | undefined

/**
 * Standard output for whole lines. Lines of one turn of the event loop share one write: under load a system call a line
 * is most of what logging costs. Nothing is lost when the process ends in between.
 */
export const standardOutput = (): LogOutput => {
  shared ??= createStandardOutput()
  return shared
}

const createStandardOutput = (): LogOutput => {
  const stdout = destination({ dest: STDOUT, sync: true })
  // A reader that went away (`fleet serve | head`) must not end the router.
  stdout.on('error', () => undefined)
  let pending = ''
  const flush = (): void => {
    const batch = pending
    pending = ''
    if (batch !== '') stdout.write(batch)
  }
  process.on('exit', flush)
  return {
    write: (line) => {
      if (pending === '') setImmediate(flush)
      pending += line
      if (pending.length > BATCH_CHARACTERS) flush()
    },
    flush,
  }
}
