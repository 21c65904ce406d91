import { destination, pino, stdTimeFunctions } from 'pino'
import type { Fact } from '../domain/facts'
import type { Sink } from './journal'
import { createFolding, type Subject } from './log-folding'
import { type Fields, type Level, levelOf, lineOf } from './log-lines'
import { prettyLine } from './log-pretty'

export interface LogOptions {
  /** `debug`, `info`, `warn`, `error`, `silent`. */
  readonly level: string
  readonly format: 'auto' | 'pretty' | 'json'
  /** Takes whole lines, newline included; standard output when absent. */
  readonly write?: (line: string) => void
}

export interface Log extends Sink {
  debug(fields: Fields, message: string): void
  info(fields: Fields, message: string): void
  warn(fields: Fields, message: string): void
  error(fields: Fields, message: string): void
  /** Tells what was folded so far; lines themselves are never held back. */
  flush(): void
}

/**
 * One line per fact, with fields. Written in-process: log libraries' worker threads do not exist in the executable.
 * Equal warnings of one node or actor within 10 s are written once and counted.
 */
export const createLog = ({ level, format, write }: LogOptions): Log => {
  const isPretty = format === 'pretty' || (format === 'auto' && write === undefined && process.stdout.isTTY === true)
  const out = write ?? lineWriter()
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: isPretty ? (line: string) => out(`${prettyLine(line)}\n`) : out },
  )
  const enabled: Readonly<Record<Level, boolean>> = {
    debug: logger.isLevelEnabled('debug'),
    info: logger.isLevelEnabled('info'),
    warn: logger.isLevelEnabled('warn'),
    error: logger.isLevelEnabled('error'),
  }
  const folding = createFolding()

  const tellFolded = (nowMs?: number): void => {
    for (const { what, subject, count } of folding.collect(nowMs)) {
      logger.warn({ ...subject, repeated: count }, what)
    }
  }

  const put = (at: Level, fields: Fields, message: string, nowMs: number): void => {
    tellFolded(nowMs)
    const folds = at === 'warn' || at === 'error'
    if (folds && !folding.admits(message, subjectOf(fields), nowMs)) return
    logger[at](fields, message)
  }

  const direct =
    (at: Level) =>
    (fields: Fields, message: string): void => {
      if (enabled[at]) put(at, fields, message, Date.now())
    }

  return {
    name: 'log',
    hear: (fact: Fact) => {
      if (!enabled[levelOf(fact)]) return
      const line = lineOf(fact)
      put(line.level, line.fields, line.message, fact.at)
    },
    debug: direct('debug'),
    info: direct('info'),
    warn: direct('warn'),
    error: direct('error'),
    flush: () => tellFolded(),
  }
}

const subjectOf = ({ node, actor }: Fields): Subject => {
  if (typeof node === 'string') return { node }
  return typeof actor === 'string' ? { actor } : {}
}

const STDOUT = 1

const lineWriter = (): ((line: string) => void) => {
  const stdout = destination({ dest: STDOUT, sync: true })
  // A reader that went away (`fleet serve | head`) must not end the router.
  stdout.on('error', () => undefined)
  return (line) => void stdout.write(line)
}
