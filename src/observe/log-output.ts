import { destination } from 'pino'

const STDOUT = 1
/** Lines are gathered for so long, in ms, or until they are as much as this. */
const GATHER_MS = 20
const BATCH_CHARACTERS = 64 * 1024

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
      if (pending === '') setTimeout(flush, GATHER_MS)
      pending += line
      if (pending.length > BATCH_CHARACTERS) flush()
    },
    flush,
  }
}
