/** `fleet serve` from its sources as a process of its own, for what only a process shows: signals, exit codes, memory. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cleanEnv } from './binary'
import { until } from './fakes'

export interface Served {
  readonly url: string
  readonly port: number
  /** Where its configuration and its state are. */
  readonly folder: string
  /** What it told people so far. */
  said(): string
  kill(signal: NodeJS.Signals): void
  readonly exited: Promise<number>
  /** Memory in use, in MB (10^6 bytes); only on Linux. */
  rssMb(): number
}

const root = join(import.meta.dir, '..', '..')
const READY = /Ready +(http:\/\/127\.0\.0\.1:(\d+))/

export interface Spawned {
  readonly child: Bun.Subprocess
  said(): string
}

/** Starts it in that folder, which holds its `fleet.toml`, and waits for nothing. */
export const spawnServed = (folder: string, listen = '127.0.0.1:0'): Spawned => {
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--config', join(folder, 'fleet.toml')], {
    cwd: root,
    env: cleanEnv({
      FLEET_SERVER_LISTEN: listen,
      FLEET_STATE_PATH: folder,
      FLEET_DISCOVERY_LOCAL: 'false',
    }),
    stdout: 'ignore',
    stderr: 'pipe',
  })
  let said = ''
  const gather = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const piece of child.stderr) said += decoder.decode(piece, { stream: true })
  }
  void gather()
  return { child, said: () => said }
}

/** Runs with such a process and ends it whatever happens. `config` gets its listener and its folder here. */
export const withServed = async <T>(config: string, run: (served: Served) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-served-'))
  writeFileSync(join(folder, 'fleet.toml'), config)
  const { child, said } = spawnServed(folder)
  try {
    await until(() => READY.test(said()), 15_000)
    const [, url = '', port] = READY.exec(said()) ?? []
    return await run({
      url,
      port: Number(port),
      folder,
      said,
      kill: (signal) => child.kill(signal),
      exited: child.exited,
      rssMb: () => (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6,
    })
  } finally {
    child.kill('SIGKILL')
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  }
}
