/** The Python clients of the end-to-end tests: where they are, and how their checks are run. */
import { join } from 'node:path'
import { engine } from './engine'
import { describeUnless, madeBy } from './needs'

export interface ClientCheck {
  readonly client: string
  readonly check: string
  /** What does not hold, null where all does. */
  readonly problem: string | null
}

const root = join(import.meta.dir, '..', '..')
const script = join(root, 'scripts', 'python-clients.sh')
const checks = join(root, 'test', 'e2e', 'clients.py')

/** A `describe` that needs the Python clients, and the real engine beside them. */
export const describeWithPython = (name: string, body: (python: string) => void): void => {
  const made = madeBy(script)
  const paths = engine()
  const missing =
    'missing' in made
      ? `there are no Python clients: ${made.missing}`
      : 'missing' in paths
        ? `there is no real engine: ${paths.missing}`
        : undefined
  describeUnless(missing, name, () => body('lines' in made ? (made.lines[0] ?? '') : ''))
}

/** Runs the checks of one kind to their end; throws with what Python said where it ended early. */
export const runClients = async (python: string, ...args: readonly string[]): Promise<readonly ClientCheck[]> => {
  const child = Bun.spawn([python, checks, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`clients.py ended with ${code}:\n${stderr}`)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ClientCheck)
}
