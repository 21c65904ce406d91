import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from './ports/clock'
import type { Random } from './ports/random'

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (handle) => clearTimeout(handle as Timer),
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'

/** The machine's own randomness. */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: (prefix) =>
    `${prefix}_${Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => ALPHABET[byte % 36]).join('')}`,
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
