import type { Fact } from '../domain/facts'
import type { Sink } from './journal'
import { createFolding, type Subject } from './log-folding'
import { type Fields, fieldsOf, type Level, levelOf } from './log-lines'
import { standardOutput } from './log-output'
import { createLogWriter } from './log-writer'

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
  /** From now on at this level and in this form. */
  configure(options: Pick<LogOptions, 'level' | 'format'>): void
  /** Tells what was folded so far and writes what is pending; lines wait some milliseconds for others at most. */
  flush(): void
}

/**
 * One line per fact, with fields.
 * Equal warnings of one node or actor within 10 s are written once and counted.
 */
export const createLog = ({ level, format, write }: LogOptions): Log => {
  const output = write === undefined ? standardOutput() : undefined
  const out = write ?? ((line: string) => output?.write(line))
  const isForPeople = write === undefined && process.stdout.isTTY === true
  const writerFor = (options: Pick<LogOptions, 'level' | 'format'>) =>
    createLogWriter(options.level, options.format === 'pretty' || (options.format === 'auto' && isForPeople), out)
  let writer = writerFor({ level, format })
  const folding = createFolding()

  const tellFolded = (nowMs?: number): void => {
    for (const { what, subject, count } of folding.collect(nowMs)) {
      writer.write('warn', { ...subject, repeated: count }, what)
    }
  }

  const tellDropped = (): void => {
    const lines = output?.dropped() ?? 0
    if (lines > 0) writer.write('warn', { lines }, 'log lines were lost: nobody took them')
  }

  const put = (at: Level, fields: Fields, message: string, nowMs: number): void => {
    tellDropped()
    tellFolded(nowMs)
    // Every request keeps the line of its end.
    const folds = (at === 'warn' || at === 'error') && message !== 'request.settled'
    if (folds && !folding.admits(message, subjectOf(fields), nowMs)) return
    writer.write(at, fields, message)
  }

  const direct =
    (at: Level) =>
    (fields: Fields, message: string): void => {
      if (writer.isEnabled(at)) put(at, fields, message, Date.now())
    }

  return {
    name: 'log',
    hear: (fact: Fact) => {
      const level = levelOf(fact)
      if (writer.isEnabled(level)) put(level, fieldsOf(fact), fact.type, fact.at)
    },
    debug: direct('debug'),
    info: direct('info'),
    warn: direct('warn'),
    error: direct('error'),
    configure: (next) => {
      writer = writerFor(next)
    },
    flush: () => {
      tellFolded()
      output?.flush()
    },
  }
}

/** A configuration with another first problem is another warning: whoever edits it wants to see the next one at once. */
const subjectOf = ({ node, actor, problems }: Fields): Subject => {
  if (Array.isArray(problems)) return { problem: String(problems[0]) }
  if (typeof node === 'string') return { node }
  return typeof actor === 'string' ? { actor } : {}
}
