/** The executable as a user runs it: built when older than its sources, started with a configuration of its own. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './engine'

const root = join(import.meta.dir, '..', '..')
const executable = join(root, 'dist', 'fleet')
const startDeadlineMs = 20_000

/** Time for building on a slow machine; for `beforeAll`. */
export const buildTimeoutMs = 180_000

export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface Running {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** What it has written so far, both streams. */
  output(): string
  /** Runs another command of the executable against this router. */
  cli(...args: string[]): Promise<Finished>
  json<T>(path: string): Promise<T>
  /** Sends the signal and resolves to the exit code. */
  end(signal?: NodeJS.Signals): Promise<number>
}

export interface ServeOptions extends RunOptions {
  /** Text of fleet.toml; absent: no file. */
  readonly config?: string
  readonly args?: readonly string[]
  /** What has to answer 200 before it counts as started; `/readyz` (a node is there) unless told. */
  readonly awaits?: '/healthz' | '/readyz'
}

/** Path of `dist/fleet`, built first when it is missing or older than what it is made from. */
export const binary = async (): Promise<string> => {
  if (!isFresh()) {
    const build = Bun.spawn(['node', join(root, 'scripts', 'build.mjs')], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
    const [code, stdout, stderr] = await settled(build)
    if (code !== 0) throw new Error(`the executable does not build:\n${stdout}${stderr}`)
  }
  return executable
}

/** A folder that holds nothing, and its removal. */
export const emptyFolder = (): { readonly path: string; remove(): void } => {
  const path = mkdtempSync(join(tmpdir(), 'fleet-e2e-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Runs one command to its end. */
export const run = async (
  args: readonly string[],
  { cwd = tmpdir(), env = {} }: RunOptions = {},
): Promise<Finished> => {
  const child = Bun.spawn([await binary(), ...args], {
    cwd,
    env: cleanEnv(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await settled(child)
  return { code, stdout, stderr }
}

/** Starts `fleet serve` on a free port in a folder of its own and waits until it answers. */
export const serve = async (options: ServeOptions = {}): Promise<Running> => {
  const folder = emptyFolder()
  const cwd = options.cwd ?? folder.path
  const file = join(folder.path, 'fleet.toml')
  if (options.config !== undefined) writeFileSync(file, options.config)
  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  const child = Bun.spawn(
    [
      await binary(),
      ...['serve', '--listen', `127.0.0.1:${port}`],
      ...(options.config === undefined ? [] : ['--config', file]),
      ...(options.args ?? []),
    ],
    {
      cwd,
      env: cleanEnv({ FLEET_STATE_PATH: join(folder.path, 'state'), ...options.env }),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  let output = ''
  const gather = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const piece of stream) output += decoder.decode(piece, { stream: true })
  }
  const gathered = Promise.all([gather(child.stdout), gather(child.stderr)])
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    const code = await child.exited
    await gathered
    folder.remove()
    return code
  }
  try {
    await answering(url + (options.awaits ?? '/readyz'), () => child.exitCode === null && child.signalCode === null)
  } catch (error) {
    await end('SIGKILL')
    throw new Error(`${(error as Error).message}\n${output}`)
  }
  return {
    url,
    port,
    pid: child.pid,
    output: () => output,
    cli: (...args) => run([...args, '--url', url]),
    json: async <T>(path: string) => (await (await fetch(url + path)).json()) as T,
    end,
  }
}

/** Asks until the answer satisfies, at most `withinMs`; throws with the last answer otherwise. */
export const until = async <T>(
  ask: () => Promise<T>,
  satisfied: (value: T) => boolean,
  withinMs: number,
): Promise<T> => {
  const deadline = performance.now() + withinMs
  for (;;) {
    const value = await ask()
    if (satisfied(value)) return value
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms; last: ${JSON.stringify(value)}`)
    await Bun.sleep(20)
  }
}

const isFresh = (): boolean => {
  const built = modifiedAt(executable)
  const inputs = [
    ...new Bun.Glob('{src,actors}/**/*').scanSync({ cwd: root }),
    'package.json',
    'bun.lock',
    'scripts/build.mjs',
  ]
  return built > 0 && inputs.every((input) => modifiedAt(join(root, input)) <= built)
}

const modifiedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Nothing of the caller's own fleet settings may leak into the one under test. */
export const cleanEnv = (env: Readonly<Record<string, string>>): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('FLEET_') ? [] : [[name, value]],
    ),
  ),
  ...env,
})

const settled = (child: Bun.Subprocess<'ignore' | undefined, 'pipe', 'pipe'>): Promise<[number, string, string]> =>
  Promise.all([child.exited, new Response(child.stdout).text(), new Response(child.stderr).text()])

const answering = async (url: string, alive: () => boolean): Promise<void> => {
  const deadline = performance.now() + startDeadlineMs
  while (performance.now() < deadline) {
    if (!alive()) throw new Error('fleet ended before it answered')
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return
    await Bun.sleep(20)
  }
  throw new Error(`${url} was not 200 within ${startDeadlineMs / 1000} s`)
}
