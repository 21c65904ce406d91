import { realpath, stat } from 'node:fs/promises'
import { absolutePath, type ConfigOnDisk, configPath, type Disk, loadFromDisk } from './from-disk'
import type { ConfigSource } from './reload'

interface FileSource {
  readonly disk: Disk
  /** The file that `--config` names. */
  readonly named?: string
  readonly flags: Readonly<Record<string, string>>
  readonly first: ConfigOnDisk
}

const ABSENT = 'absent'

/**
 * The configuration file as something that can be read again. A file that is in use stays the one: when it goes, no
 * other takes its place. Without one, the usual places are looked at again.
 */
export const createFileSource = ({ disk, named, flags, first }: FileSource): ConfigSource => ({
  first,
  load: (path) => loadFromDisk(disk, path ?? named, flags),
  stamp: async (path) => {
    const shown = path ?? named ?? configPath(disk)
    if (shown === undefined) return ABSENT
    try {
      const real = await realpath(absolutePath(disk, shown))
      const { ino, mtimeMs, size } = await stat(real)
      return [real, ino, mtimeMs, size].join(' ')
    } catch {
      return ABSENT
    }
  },
})
