import { relative } from 'node:path'

export interface Running {
  /** From the sources of a clone, not the executable. */
  readonly isSource: boolean
  readonly execPath: string
  readonly cwd: string
  /** Where the shell finds a `fleet`, if it does. */
  readonly onPath: string | null
}

/** How a person calls this program from where they are: `fleet`, `./dist/fleet`, `npm run -s fleet --`. */
export const programName = ({ isSource, execPath, cwd, onPath }: Running): string => {
  if (isSource) return 'npm run -s fleet --'
  if (onPath === execPath) return 'fleet'
  const path = relative(cwd, execPath)
  return path.startsWith('..') ? execPath : `./${path}`
}
