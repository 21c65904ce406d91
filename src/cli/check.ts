import { type Disk, loadFromDisk } from '../config/from-disk'
import { hasErrors } from '../config/problem'
import type { Shown, Value } from '../config/read'
import { renderProblems } from '../config/render'
import { parseArgs } from './args'
import { exitCode } from './exit-codes'

export interface CheckIo extends Disk {
  /** Results: standard output. The text brings its own line ends. */
  readonly out: (text: string) => void
  /** Messages for people: standard error. */
  readonly err: (text: string) => void
}

/**
 * `fleet check`: validates the configuration without starting anything and prints every key with its value and origin.
 * `args` is what follows the command's name. Returns the exit code: 0 valid, 2 wrong usage, 3 invalid, 7 valid but with
 * warnings under `--strict`.
 */
export const check = (args: readonly string[], io: CheckIo): number => {
  const parsed = parseArgs(['check', ...args])
  if (parsed.kind !== 'run') {
    io.err(`${parsed.kind === 'usage' ? parsed.message : 'fleet check [FILE]'}\n`)
    return exitCode.wrongUsage
  }
  const { positionals, options } = parsed.args
  const named = [options.config, ...positionals].filter((file) => typeof file === 'string')
  if (named.length > 1) {
    io.err(`'check' reads one file, not ${named.join(' and ')}\n`)
    return exitCode.wrongUsage
  }
  const { path, text, problems, values } = loadFromDisk(io, named[0])
  const isValid = !hasErrors(problems)

  if (options.json) {
    const details = options.quiet ? {} : { values }
    io.out(`${JSON.stringify({ valid: isValid, file: path ?? null, problems, ...details }, null, 2)}\n`)
  } else {
    if (isValid && !options.quiet) {
      io.out(renderValues(values))
      io.err(`${path ?? 'no fleet.toml, the defaults'}: valid\n`)
    }
    io.err(renderProblems(problems, text))
  }
  if (!isValid) return exitCode.invalidConfig
  return options.strict && problems.length > 0 ? exitCode.problemsFound : exitCode.done
}

/** Columns as wide as most lines need; a longer value pushes only its own line. */
const WIDEST_VALUE = 36

const renderValues = (values: readonly Value[]): string => {
  const rows = values.map((value) => ({
    key: value.key,
    shown: value.secret ? '(withheld)' : show(value.value),
    origin: value.origin,
  }))
  const keyWidth = Math.max(...rows.map(({ key }) => key.length))
  const valueWidth = Math.min(WIDEST_VALUE, Math.max(...rows.map(({ shown }) => shown.length)))
  let group = ''
  return rows
    .map(({ key, shown, origin }) => {
      const gap = group !== '' && group !== groupOf(key) ? '\n' : ''
      group = groupOf(key)
      return `${gap}${key.padEnd(keyWidth)}  ${shown.padEnd(valueWidth)}  ${origin}\n`
    })
    .join('')
}

/** The table that a key stands in; each entry of a list is its own. */
const groupOf = (key: string): string => /^\w+(?:\.\w+)?\[\d+\]|^\w+/.exec(key)?.[0] ?? key

const show = (value: Shown): string => {
  if (value === null) return 'none'
  if (typeof value !== 'object') return typeof value === 'string' ? JSON.stringify(value) : String(value)
  return `[${value.map((item) => JSON.stringify(item)).join(', ')}]`
}
