import { describe, expect, test } from 'bun:test'
import { findConfigFile } from '../../../src/config/find'
import { loadFromDisk } from '../../../src/config/from-disk'

const among =
  (...files: string[]) =>
  (path: string) =>
    files.includes(path)

describe('finding the file', () => {
  const system = '/etc/fleet/fleet.toml'
  const user = '/home/me/.config/fleet/fleet.toml'

  test('FLEET_CONFIG wins, whether it exists or not', () => {
    expect(findConfigFile({ FLEET_CONFIG: '/x.toml' }, among('fleet.toml'), '/home/me')).toBe('/x.toml')
  })

  test('then here, the user, the system', () => {
    expect(findConfigFile({}, among('fleet.toml', user, system), '/home/me')).toBe('fleet.toml')
    expect(findConfigFile({}, among(user, system), '/home/me')).toBe(user)
    expect(findConfigFile({}, among(system), '/home/me')).toBe(system)
    expect(findConfigFile({}, among(), '/home/me')).toBeUndefined()
  })

  test("the user's folder follows XDG_CONFIG_HOME", () => {
    expect(findConfigFile({ XDG_CONFIG_HOME: '/cfg' }, among('/cfg/fleet/fleet.toml'), '/home/me')).toBe(
      '/cfg/fleet/fleet.toml',
    )
  })
})

describe('loading from disk', () => {
  const disk = (files: Record<string, string>, env = {}) => ({
    env: { HOME: '/home/me', ...env },
    cwd: '/srv',
    exists: (path: string) => path in files,
    read: (path: string) => {
      const text = files[path]
      if (text === undefined) throw new Error('ENOENT')
      return text
    },
  })

  test('key files are looked for beside the file that names them', () => {
    const toml = '[[nodes]]\nname = "a"\nkind = "openai"\nurl = "http://h:1"\nkey_file = "a.key"'

    const { config } = loadFromDisk(disk({ '/srv/conf/f.toml': toml, '/srv/conf/a.key': 'secret-1\n' }), 'conf/f.toml')

    expect(config?.nodes[0]?.key).toBe('secret-1')
  })

  test('a named file that is not there is an error, not the defaults', () => {
    const { config, problems } = loadFromDisk(disk({}, { FLEET_CONFIG: '/nowhere.toml' }))

    expect(config).toBeUndefined()
    expect(problems).toMatchObject([{ code: 'unreadable_file', message: 'cannot read /nowhere.toml' }])
  })

  test('without any file the defaults hold', () => {
    const { config, path } = loadFromDisk(disk({}))

    expect(config?.server.port).toBe(11435)
    expect(path).toBeUndefined()
  })
})
