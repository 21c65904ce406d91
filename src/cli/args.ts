import { nearest } from '../domain/nearest'
import { commands, type CommandName, type CommandSpec, isCommand } from './commands'

/** A command line that may be run: options by their name without dashes, switches as `true`. */
export interface Args {
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, string | true>>
}

export type Parsed =
  | { readonly kind: 'run'; readonly command: CommandName; readonly args: Args; readonly rest: readonly string[] }
  /** `fleet help`, `--help` anywhere: of one command, or of all. */
  | { readonly kind: 'help'; readonly command?: CommandName }
  /** No argument at all: what it means depends on the terminal. */
  | { readonly kind: 'none' }
  | { readonly kind: 'usage'; readonly message: string }

const usage = (message: string): Parsed => ({ kind: 'usage', message })

const suggesting = (message: string, suggestion: string | undefined): string =>
  suggestion === undefined ? message : `${message}, did you mean '${suggestion}'?`

const unknownCommand = (name: string): Parsed => {
  const near = nearest(name, Object.keys(commands))
  const message = `unknown command '${name}'`
  return usage(near === undefined ? `${message}: 'fleet help' lists what there is` : suggesting(message, near))
}

const isHelp = (arg: string): boolean => arg === '--help' || arg === '-h'

/** Splits what follows the command, or says what is wrong with it. */
const readArgs = (command: string, spec: CommandSpec, rest: readonly string[]): Args | { readonly message: string } => {
  const positionals: string[] = []
  const options: Record<string, string | true> = {}
  for (let index = 0; index < rest.length; index++) {
    const arg = rest[index] ?? ''
    if (arg === '--') {
      positionals.push(...rest.slice(index + 1))
      break
    }
    if (!arg.startsWith('-') || arg === '-') {
      positionals.push(arg)
      continue
    }
    const [name = '', ...value] = arg.replace(/^--/, '').split('=')
    const option = arg.startsWith('--') && Object.hasOwn(spec.options, name) ? spec.options[name] : undefined
    if (!option) {
      const near = nearest(name, Object.keys(spec.options))
      return { message: suggesting(`unknown option '${arg}' of '${command}'`, near && `--${near}`) }
    }
    if (option.value === undefined) {
      if (value.length > 0) return { message: `option '--${name}' takes no value` }
      options[name] = true
      continue
    }
    const given = value.length > 0 ? value.join('=') : rest[++index]
    if (given === undefined || given === '')
      return { message: `option '--${name}' needs a value: --${name} ${option.value}` }
    options[name] = given
  }
  return { positionals, options }
}

const wrongCount = (command: string, spec: CommandSpec, count: number): string | undefined => {
  if (count < spec.positionals.least) return `'${command}' needs ${spec.positionals.text}`
  if (count > spec.positionals.most)
    return `too many arguments for '${command}': fleet ${command} ${spec.positionals.text}`.trimEnd()
  return undefined
}

/** Reads the arguments after `fleet`. No prefix matching; a near miss is suggested. */
export const parseArgs = (argv: readonly string[]): Parsed => {
  const [first, ...rest] = argv
  if (first === undefined) return { kind: 'none' }
  if (first === '--version' || first === '-v') return parseArgs(['version', ...rest])
  if (first === 'help' || isHelp(first)) {
    const [topic] = rest
    if (topic === undefined) return { kind: 'help' }
    return isCommand(topic) ? { kind: 'help', command: topic } : unknownCommand(topic)
  }
  if (!isCommand(first)) return first.startsWith('-') ? usage(`unknown option '${first}'`) : unknownCommand(first)
  if (rest.some(isHelp)) return { kind: 'help', command: first }

  const spec = commands[first]
  const args = readArgs(first, spec, rest)
  if ('message' in args) return usage(args.message)
  const problem = wrongCount(first, spec, args.positionals.length)
  return problem === undefined ? { kind: 'run', command: first, args, rest } : usage(problem)
}
