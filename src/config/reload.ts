import type { Config } from '../domain/config'
import type { ConfigProblem, ReloadCause } from '../domain/facts'
import type { Clock } from '../ports/clock'
import type { Journal } from '../ports/journal'
import { adoptable } from './adoptable'
import { type Change, differences } from './difference'
import type { ConfigOnDisk } from './from-disk'
import { failure, type Problem } from './problem'
import { createWatch, type Watch } from './watch'

/** Where the configuration comes from. */
export interface ConfigSource {
  /** As it was read at the start, valid. */
  readonly first: ConfigOnDisk
  /** Reads it again; `path` is the file in use, if there is one. */
  load(path: string | undefined): ConfigOnDisk
  /** What tells one state of that file from another. Never rejects. */
  stamp(path: string | undefined): Promise<string>
}

export type ReloadOutcome =
  | { readonly outcome: 'applied'; readonly changes: readonly Change[]; readonly waiting: readonly string[] }
  | { readonly outcome: 'rejected'; readonly problems: readonly Problem[] }

export interface Reloader extends Watch {
  /** Reads, checks and applies now, whole or not at all; what is in force stays when anything is wrong. Never throws. */
  reload(cause: ReloadCause): ReloadOutcome
}

export interface ReloadOptions {
  readonly source: ConfigSource
  /** The configuration in force. */
  readonly running: () => Config
  readonly apply: (config: Config) => void
  readonly journal: Journal
  readonly clock: Clock
}

/** Changes the configuration while the router runs. Each change that took effect, and each rejection, is a fact. */
export const createReloader = ({ source, running, apply, journal, clock }: ReloadOptions): Reloader => {
  let last = source.first

  const reject = (cause: ReloadCause, problems: readonly Problem[]): ReloadOutcome => {
    journal.record({ type: 'config.rejected', at: clock.now(), cause, problems: problems.map(factOf) })
    return { outcome: 'rejected', problems }
  }

  const reload = (cause: ReloadCause): ReloadOutcome => {
    const next = read(source, last)
    const errors = next.problems.filter(({ severity }) => severity === 'error')
    if (next.config === undefined || errors.length > 0) return reject(cause, errors)
    const before = last.config === undefined ? running() : last.config
    const changes = differences({ config: before, values: last.values }, { config: next.config, values: next.values })
    const { config, waiting } = adoptable(running(), next.config)
    last = next

    const at = clock.now()
    const waits = (key: string): boolean => waiting.some((name) => key === name || key.startsWith(`${name}.`))
    for (const change of changes)
      journal.record({ type: 'config.changed', at, ...change, ...(waits(change.key) ? { waits: true } : {}) })
    apply(config)
    const changed = changes.filter(({ key }) => !waits(key)).length
    journal.record({ type: 'config.applied', at, cause, changed, waiting })
    return { outcome: 'applied', changes, waiting }
  }

  const watch = createWatch({ stamp: () => source.stamp(last.path), clock, changed: () => reload('file') })
  return { ...watch, reload }
}

/** What the source says, or why it cannot be taken. A file in use that is gone or empty was not meant as "all defaults". */
const read = (source: ConfigSource, last: ConfigOnDisk): ConfigOnDisk => {
  try {
    const next = source.load(last.path)
    const isEmptied = next.text.trim() === '' && last.text.trim() !== '' && next.config !== undefined
    return isEmptied ? { ...next, problems: [emptied(next.path ?? '')] } : next
  } catch (error) {
    const message = `the configuration cannot be read: ${error instanceof Error ? error.message : String(error)}`
    return { ...last, problems: [failure('unreadable_file', '', message)] }
  }
}

const emptied = (path: string): Problem => failure('unreadable_file', '', `${path} is empty`, { file: path })

const factOf = ({ message, path, file, line, column, suggestion }: Problem): ConfigProblem => ({
  message: suggestion === undefined ? message : `${message}, did you mean "${suggestion}"?`,
  path,
  ...(file === undefined ? {} : { file }),
  ...(line === undefined ? {} : { line }),
  ...(column === undefined ? {} : { column }),
})
