import type { Disk } from '../config/from-disk'
import { setAdmission } from './admission'
import { checkAndApply } from './apply'
import { parseArgs } from './args'
import { check } from './check'
import { exitCode } from './exit-codes'
import { explain } from './explain'
import { help } from './help'
import type { Io } from './io'
import { keys } from './keys'
import { listKeys } from './keys-list'
import { status } from './status'
import { type Simulate, simulate } from './simulate'
import { type Build, version } from './version'

export interface CommandLine {
  readonly build: Build
  readonly io: Io
  readonly disk: Disk
  /** Runs the router until it was asked to end; resolves with the exit code. */
  serve(options: Readonly<Record<string, string | true>>): Promise<number>
  /** Runs the core on simulated machines. */
  readonly simulate: Simulate
}

/** Carries out one command line and resolves with its exit code. */
export const runCommand = async (argv: readonly string[], line: CommandLine): Promise<number> => {
  const { build, io, disk, serve } = line
  const { out, err } = io
  const parsed = parseArgs(argv)
  switch (parsed.kind) {
    case 'usage':
      err(`${parsed.message}\n`)
      return exitCode.wrongUsage
    case 'help':
      out(help(parsed.command))
      return exitCode.done
    case 'none':
      // A person at a terminal wants the thing itself; a script forgot the command.
      if (io.isTty) return serve({})
      err(help())
      return exitCode.wrongUsage
    case 'run':
      break
  }
  const { command, args, rest } = parsed
  switch (command) {
    case 'serve':
      return serve(args.options)
    case 'check':
      return args.options.apply ? checkAndApply(rest, args, { disk, io }) : check(rest, { ...disk, out, err })
    case 'keys':
      return args.positionals[0] === 'list' ? listKeys(args, io) : keys(rest, { out, err })
    case 'status':
      return status(args, io)
    case 'explain':
      return explain(args, io)
    case 'simulate':
      return simulate(args, io, line.simulate)
    case 'version':
      return version(args, io, build)
    case 'pause':
    case 'resume':
    case 'drain':
      return setAdmission(command, args, io)
  }
}
