/** Programs under measurement: pinned to a core, watched through /proc, ended by their id. */
import { closeSync, openSync, readFileSync } from 'node:fs'

/** What is measured runs alone on one core; everything that makes load, upstream included, shares the other. */
export const CORE = { measured: 0, load: 1 } as const

/** Of `utime` and `stime` in /proc: Linux has shown hundredths of a second to programs for as long as it has /proc. */
const TICKS_PER_SECOND = 100

export interface Program {
  readonly pid: number
  /** Of the process and its children, since their start, in seconds. */
  cpuSeconds(): number
  /** Resident memory of the process alone, in MB (10^6 bytes). */
  rssMb(): number
  stop(): Promise<void>
}

export interface Launch {
  readonly command: readonly string[]
  readonly core: number
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** File that gets everything it prints. */
  readonly log: string
}

const children = (pid: number): number[] => {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

const ownTicks = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in brackets may hold spaces, so count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

const STOP_PATIENCE_MS = 3_000

export const launch = ({ command, core, env, cwd, log }: Launch): Program => {
  const output = openSync(log, 'a')
  const child = Bun.spawn(['taskset', '-c', String(core), ...command], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdin: 'ignore',
    stdout: output,
    stderr: output,
    ...(cwd === undefined ? {} : { cwd }),
  })
  closeSync(output)
  const { pid } = child
  return {
    pid,
    cpuSeconds: () => [pid, ...children(pid)].reduce((sum, one) => sum + ownTicks(one), 0) / TICKS_PER_SECOND,
    rssMb: () => (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6,
    stop: async () => {
      child.kill('SIGTERM')
      const patience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS)
      await child.exited
      clearTimeout(patience)
    },
  }
}

/** Runs a program to its end and gives what it printed; throws when it failed. */
export const output = async (command: readonly string[], core: number): Promise<string> => {
  const child = Bun.spawn(['taskset', '-c', String(core), ...command], {
    env: { ...process.env, NODE_ENV: 'production' },
    stdin: 'ignore',
    stderr: 'pipe',
  })
  const [text, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${errors.slice(-500)}`)
  return text
}

/** Resolves once the address answers with 2xx; throws after `limitMs`. */
export const untilAnswers = async (url: string, limitMs = 10_000): Promise<void> => {
  const end = performance.now() + limitMs
  while (performance.now() < end) {
    const ok = await fetch(url).then(
      async (response) => {
        await response.arrayBuffer()
        return response.ok
      },
      () => false,
    )
    if (ok) return
    await Bun.sleep(20)
  }
  throw new Error(`${url} does not answer`)
}

/** A port that nothing listens on now. */
export const freePort = (): number => {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = probe
  probe.stop(true)
  return port
}
