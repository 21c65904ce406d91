import { afterAll, afterEach, expect, test } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { cleanEnv, emptyFolder, until } from '../support/binary'
import { freePort } from '../support/engine'

const root = join(import.meta.dir, '..', '..')
const folder = emptyFolder()
let npm: ChildProcess

/** `npm start` as the leader of a process group, as a terminal has it. */
const start = async (): Promise<string> => {
  const url = `http://127.0.0.1:${freePort()}`
  npm = spawn('npm', ['start', '--', '--listen', new URL(url).host], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: cleanEnv({ FLEET_STATE_PATH: folder.path }),
  })
  let output = ''
  for (const stream of [npm.stdout, npm.stderr]) stream?.on('data', (piece) => (output += piece))
  await until(async () => hasEnded() || (await healthy(url)), Boolean, 30_000)
  if (hasEnded()) throw new Error(`npm start ended:\n${output}`)
  return url
}

const healthy = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    (answer) => answer.ok,
    () => false,
  )

const hasEnded = (): boolean => npm.exitCode !== null || npm.signalCode !== null

const exitCode = (): Promise<number | null> => new Promise((resolve) => npm.once('exit', resolve))

afterEach(() => {
  if (!hasEnded() && npm.pid) process.kill(-npm.pid, 'SIGKILL')
})
afterAll(() => folder.remove())

test.each([
  ['SIGTERM', 'npm alone'],
  ['SIGINT', 'npm alone'],
  ['SIGTERM', 'the process group'],
  ['SIGINT', 'the process group'],
] as const)(
  '%s to %s ends the server gracefully and npm with 0',
  async (signal, target) => {
    const url = await start()
    const code = exitCode()

    process.kill(target === 'npm alone' ? (npm.pid ?? 0) : -(npm.pid ?? 0), signal)

    expect(await code).toBe(0)
    expect(await healthy(url)).toBe(false)
  },
  60_000,
)
