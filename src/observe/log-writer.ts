import pino from 'pino'
import type { Fields, Level } from './log-lines'
import { prettyLine } from './log-pretty'

const MS_PER_SECOND = 1_000

export interface LogWriter {
  isEnabled(level: Level): boolean
  /** Writes the line if its level is enabled. */
  write(level: Level, fields: Fields, message: string): void
}

/**
 * Log lines as one JSON object each, `level`, `time`, the fields, `msg`; or readable, `isPretty`. pino makes them and
 * `out` takes them: its own destinations write a line at a time, its transports need worker threads that do not exist in
 * the executable.
 */
export const createLogWriter = (level: string, isPretty: boolean, out: (line: string) => void): LogWriter => {
  const timeText = createTimeText()
  const log = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${timeText(Date.now())}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: isPretty ? (line: string) => out(`${prettyLine(line)}\n`) : out },
  )
  // Asked for every fact.
  const isLoud = (of: Level): boolean => log.isLevelEnabled(of)
  const enabled = { debug: isLoud('debug'), info: isLoud('info'), warn: isLoud('warn'), error: isLoud('error') }

  return {
    isEnabled: (of) => enabled[of],
    write: (of, fields, message) => log[of](fields, message),
  }
}

/** ISO 8601 in UTC; the lines of a second share all but its thousandths. */
const createTimeText = (): ((ms: number) => string) => {
  let last = Number.NaN
  let second = ''
  return (ms) => {
    const at = Math.floor(ms / MS_PER_SECOND)
    if (at !== last) {
      last = at
      second = new Date(ms).toISOString().slice(0, -'000Z'.length)
    }
    const rest = ms - at * MS_PER_SECOND
    return `${second}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`
  }
}
