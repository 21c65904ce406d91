import type { Disk } from '../config/from-disk'
import type { Args } from './args'
import { check } from './check'
import { withClient } from './client'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'

interface Applied {
  readonly changes: readonly { readonly key: string; readonly from: unknown; readonly to: unknown }[]
  /** Keys that wait for a restart. */
  readonly waiting: readonly string[]
}

/**
 * `fleet check --apply`: checks the configuration here, then has the running router read its own file again. `rest` is
 * what follows the command's name. Returns the exit code of whichever went wrong first.
 */
export const checkAndApply = async (
  rest: readonly string[],
  args: Args,
  { disk, io }: { readonly disk: Disk; readonly io: Io },
): Promise<number> => {
  const checked = check([...rest, ...(args.options.quiet ? [] : ['--quiet'])], { ...disk, out: () => {}, err: io.err })
  return checked === exitCode.done ? apply(args, io) : checked
}

const apply = (args: Args, io: Io): Promise<ExitCode> =>
  withClient(args, io, async (client) => {
    const applied = await client.post<Applied>('/api/v1/config/reload')
    io.out(args.options.json ? `${JSON.stringify(applied, null, 2)}\n` : `${told(applied)}\n`)
    return exitCode.done
  })

const told = ({ changes, waiting }: Applied): string => {
  const lines = changes.map(({ key, from, to }) => `${key}  ${shown(from)} -> ${shown(to)}`)
  const waits = waiting.length === 0 ? [] : [`after a restart only: ${waiting.join(', ')}`]
  return [...(lines.length === 0 ? ['nothing differs from what runs'] : lines), ...waits].join('\n')
}

const shown = (value: unknown): string => (value === null ? 'none' : JSON.stringify(value))
