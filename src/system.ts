import { homedir } from 'node:os'
import { join } from 'node:path'
import { COARSE_FROM_MS, createCoarseTimers } from './coarse-timers'
import type { Clock } from './ports/clock'
import type { Random } from './ports/random'

const coarse = createCoarseTimers(Date.now, (run, ms) => {
  const timer = setInterval(run, ms)
  return () => clearInterval(timer)
})

/** The machine's own time. Deadlines of ten seconds and more may be late by half a second; none is ever early. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (run, ms) => (ms >= COARSE_FROM_MS ? coarse.set(run, ms) : setTimeout(run, ms)),
  clearTimeout: (handle) => {
    if (handle !== undefined && handle !== null && !coarse.clear(handle)) clearTimeout(handle as Timer)
  },
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'
const ID_LENGTH = 12
/** Random bytes for 256 ids: one call of the system's generator for all of them. */
const pool = new Uint8Array(ID_LENGTH * 256)
let used = pool.length

/** The machine's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: (prefix) => {
    if (used === pool.length) {
      crypto.getRandomValues(pool)
      used = 0
    }
    let id = `${prefix}_`
    for (const end = used + ID_LENGTH; used < end; used++) id += ALPHABET[(pool[used] as number) % 36]
    return id
  },
}

/** What nobody caught is told and survived: one broken callback is no reason to drop everybody's answers. */
export const survive = (tell: (message: string, stack: string | undefined) => void): void => {
  const caught = (error: unknown): void => {
    if (error instanceof Error) tell(error.message, error.stack)
    else tell(String(error), undefined)
  }
  process.on('uncaughtException', caught)
  process.on('unhandledRejection', caught)
}

type Env = Readonly<Record<string, string | undefined>>

/** Where state is kept: the configured folder, systemd's, or the platform's usual place for data of programs. */
export const dataFolder = (configured: string, env: Env, platform: string = process.platform): string => {
  if (configured !== '') return configured
  if (env.STATE_DIRECTORY) return env.STATE_DIRECTORY.split(':')[0] ?? env.STATE_DIRECTORY
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? homedir(), 'fleet')
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'fleet')
  return join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'fleet')
}
