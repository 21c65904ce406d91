import type { Args } from './args'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'

export interface Build {
  readonly version: string
  readonly commit: string
  /** Such as `linux-x64`. */
  readonly platform: string
  /** Such as `bun 1.4.4`. */
  readonly runtime: string
}

/** `fleet version`: which build this is. */
export const version = (args: Args, io: Pick<Io, 'out'>, build: Build): ExitCode => {
  const { version, commit, platform, runtime } = build
  io.out(
    args.options.json ? `${JSON.stringify(build, null, 2)}\n` : `fleet ${version} (${commit}) ${platform} ${runtime}\n`,
  )
  return exitCode.done
}
