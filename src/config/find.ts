import { join } from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

/**
 * The configuration file to read: `FLEET_CONFIG` (named even when it does not exist, so that its reader says so), else
 * the first that exists of `./fleet.toml`, the user's configuration folder and `/etc/fleet/fleet.toml`.
 */
export const findConfigFile = (env: Env, exists: (path: string) => boolean, home: string): string | undefined => {
  if (env.FLEET_CONFIG) return env.FLEET_CONFIG
  const userFolders = [
    env.XDG_CONFIG_HOME || join(home, '.config'),
    env.APPDATA,
    join(home, 'Library', 'Application Support'),
  ]
  const places = [
    'fleet.toml',
    ...userFolders.filter((folder) => folder !== undefined).map((folder) => join(folder, 'fleet', 'fleet.toml')),
    '/etc/fleet/fleet.toml',
  ]
  return places.find(exists)
}
