import { isAbsolute, join } from 'node:path'
import { findConfigFile } from './find'
import { type LoadedConfig, loadConfig } from './load'
import type { Problem } from './problem'

export interface Disk {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The text of a file; throws when it cannot be read. Paths are absolute. */
  readonly read: (path: string) => string
  readonly exists: (path: string) => boolean
}

export interface ConfigOnDisk extends LoadedConfig {
  /** The file that was read or should have been; absent when there is none and all is default. */
  readonly path?: string
  /** Its text, for `renderProblems`; empty when there is none. */
  readonly text: string
}

/** Finds the file (`named`, else the usual places), reads it and loads it. A file that cannot be read is an error. */
export const loadFromDisk = (
  disk: Disk,
  named?: string,
  flags: Readonly<Record<string, string>> = {},
): ConfigOnDisk => {
  const { env } = disk
  const read = (path: string): string => disk.read(absolutePath(disk, path))
  const path = named ?? configPath(disk)
  const load = (file?: { path: string; text: string }): LoadedConfig =>
    loadConfig({ ...(file ? { file } : {}), env, flags, readSecret: read })
  if (path === undefined) return { ...load(), text: '' }
  const text = readOrUndefined(() => read(path))
  if (text !== undefined) return { ...load({ path, text }), path, text }
  const { problems, values } = load()
  return { problems: [unreadable(path), ...problems], values, path, text: '' }
}

/** The file that is read when none is named, as the user would write it. */
export const configPath = (disk: Disk): string | undefined => {
  const { env } = disk
  const home = env.HOME ?? env.USERPROFILE ?? '/'
  return findConfigFile(env, (place) => disk.exists(absolutePath(disk, place)), home)
}

export const absolutePath = ({ cwd }: Disk, path: string): string => (isAbsolute(path) ? path : join(cwd, path))

const readOrUndefined = (read: () => string): string | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const unreadable = (path: string): Problem => ({
  severity: 'error',
  code: 'unreadable_file',
  message: `cannot read ${path}`,
  path: '',
  notes: ['is it there, and may this user read it?'],
})
