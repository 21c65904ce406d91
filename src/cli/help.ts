import { type CommandName, type CommandSpec, commands } from './commands'

const synopsis = (name: string, spec: CommandSpec): string => `fleet ${name} ${spec.positionals.text}`.trimEnd()

const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}

const commandHelp = (name: CommandName): string => {
  const spec: CommandSpec = commands[name]
  const options = Object.entries(spec.options).map(
    ([option, { value, does }]) => [value === undefined ? `--${option}` : `--${option} ${value}`, does] as const,
  )
  const list = options.length > 0 ? `\n${columns(options)}\n` : ''
  return `${synopsis(name, spec)}\n  ${spec.does}\n${list}`
}

const overview = (): string => {
  const rows = Object.entries<CommandSpec>(commands).map(([name, spec]) => [synopsis(name, spec), spec.does] as const)
  return `fleet: several machines with local models behind one endpoint

${columns(rows)}

Run "fleet help COMMAND" for its options. On a terminal, plain "fleet" serves.
`
}

/** The help text of one command, or of all; ends with a newline. */
export const help = (command?: CommandName): string => (command === undefined ? overview() : commandHelp(command))
