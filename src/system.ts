import { homedir } from 'node:os'
import { join } from 'node:path'
import { COARSE_FROM_MS, createCoarseTimers } from './coarse-timers'
import { createForwardTime } from './forward-time'
import type { Clock } from './ports/clock'
import type { Random } from './ports/random'

// By a clock that nobody sets, as the system's own timers: a corrected time of day must not end what is under way.
const coarse = createCoarseTimers(
  () => performance.now(),
  (run, ms) => {
    const timer = setInterval(run, ms)
    return () => clearInterval(timer)
  },
)

const now = createForwardTime(
  () => Date.now(),
  () => performance.now(),
)

/** The machine's own time, which never goes back. Deadlines of ten seconds and more may be late by half a second; none is ever early. */
export const systemClock: Clock = {
  now,
  setTimeout: (run, ms) => (ms >= COARSE_FROM_MS ? coarse.set(run, ms) : setTimeout(run, ms)),
  clearTimeout: (handle) => {
    if (handle !== undefined && handle !== null && !coarse.clear(handle)) clearTimeout(handle as Timer)
  },
}

/** Base 36 digits: milliseconds since the epoch (until 2059), then a count that goes on from where chance put it. */
const TIME_DIGITS = 8
const COUNT_DIGITS = 4
const COUNTS = 36 ** COUNT_DIGITS
let count = Math.floor(Math.random() * COUNTS)
let at = 0
let time = ''

/** The machine's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  // Ids grow with time, so that the index of the stored records grows at its end instead of all over the file.
  id: (prefix) => {
    const made = now()
    if (made !== at) {
      at = made
      time = made.toString(36).padStart(TIME_DIGITS, '0')
    }
    count = (count + 1) % COUNTS
    return `${prefix}_${time}${count.toString(36).padStart(COUNT_DIGITS, '0')}`
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
