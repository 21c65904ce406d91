import type { Fields, Level } from './log-lines'
import { prettyLine } from './log-pretty'

/** From the most talkative to none at all. */
const LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

export interface LogWriter {
  isEnabled(level: Level): boolean
  /** Writes the line if its level is enabled. */
  write(level: Level, fields: Fields, message: string): void
}

/**
 * Log lines as one JSON object each, `level`, `time`, the fields, `msg`; or readable, `isPretty`. A line is a few
 * microseconds of a request that takes some fifty: a logging library's is three times as much.
 */
export const createLogWriter = (level: string, isPretty: boolean, out: (line: string) => void): LogWriter => {
  const least = LEVELS.indexOf(level)
  const isEnabled = (of: Level): boolean => LEVELS.indexOf(of) >= least
  const timeText = createTimeText()

  return {
    isEnabled,
    write: (of, fields, message) => {
      if (!isEnabled(of)) return
      const inside = JSON.stringify(fields).slice(1, -1)
      const head = `{"level":"${of}","time":"${timeText(Date.now())}",${inside}`
      const line = `${head}${inside === '' ? '' : ','}"msg":${JSON.stringify(message)}}\n`
      out(isPretty ? `${prettyLine(line)}\n` : line)
    },
  }
}

/** ISO 8601 in UTC; several lines share a millisecond. */
const createTimeText = (): ((ms: number) => string) => {
  let last = Number.NaN
  let text = ''
  return (ms) => {
    if (ms !== last) {
      last = ms
      text = new Date(ms).toISOString()
    }
    return text
  }
}
