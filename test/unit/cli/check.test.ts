import { describe, expect, test } from 'bun:test'
import { check } from '../../../src/cli/check'

const run = (args: readonly string[], toml?: string, env: Record<string, string> = {}) => {
  let out = ''
  let err = ''
  const files: Record<string, string> = toml === undefined ? {} : { '/srv/fleet.toml': toml }
  const code = check(args, {
    env: { HOME: '/home/me', ...env },
    cwd: '/srv',
    exists: (path) => path in files,
    read: (path) => {
      const text = files[path]
      if (text === undefined) throw new Error('ENOENT')
      return text
    },
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const NODE = '[[nodes]]\nname = "rig"\nkind = "ollama"\nurl = "http://10.0.0.1:11434"\nkey_env = "RIG"\n'

describe('fleet check', () => {
  test('prints every key with value and origin in columns, each node as a group of its own', () => {
    const { code, out, err } = run([], `[server]\nlisten = "127.0.0.1:8000"\n${NODE}`, {
      RIG: 'rig-secret',
      FLEET_LOG_LEVEL: 'warn',
    })

    const lines = out.split('\n')
    const width = lines[0]?.indexOf('1') ?? 0
    expect(code).toBe(0)
    expect(err).toBe('fleet.toml: valid\n')
    expect(out).toMatch(/^server\.listen +"127\.0\.0\.1:8000" +fleet\.toml:2$/m)
    expect(out).toMatch(/\n\nnodes\[0\]\.name +"rig" +fleet\.toml:4\n/)
    expect(out).toMatch(/^limits\.concurrent +none +default$/m)
    expect(out).toMatch(/^log\.level +"warn" +env FLEET_LOG_LEVEL$/m)
    expect(lines.filter((line) => line !== '').every((line) => line[width - 1] === ' ' && line[width] !== ' ')).toBe(
      true,
    )
    expect(out).not.toContain('rig-secret')
  })

  test('an invalid file prints its problems on stderr and exits 3', () => {
    const { code, out, err } = run([], '[log]\nlevl = "info"')

    expect(code).toBe(3)
    expect(out).toBe('')
    expect(err).toStartWith('error: unknown key "levl"\n  --> fleet.toml:2:1\n')
  })

  test('warnings exit 0, and 7 with --strict', () => {
    const env = { FLEET_LOGLEVEL: 'info' }

    expect(run([], '', env).code).toBe(0)
    expect(run(['--strict'], '', env).code).toBe(7)
    expect(run(['--strict'], '').code).toBe(0)
  })

  test('--quiet prints problems only', () => {
    expect(run(['--quiet'], '')).toEqual({ code: 0, out: '', err: '' })
    expect(run(['--quiet'], '', { FLEET_X: '1' }).err).toStartWith('warning: FLEET_X is not a variable of fleet')
  })

  test('--json prints one document with problems and values', () => {
    const { code, out, err } = run(['--json'], '[log]\nlevl = "info"')

    const document = JSON.parse(out)
    expect(code).toBe(3)
    expect(err).toBe('')
    expect(document).toMatchObject({
      valid: false,
      file: 'fleet.toml',
      problems: [
        {
          path: 'log.levl',
          line: 2,
          column: 1,
          code: 'unknown_key',
          message: 'unknown key "levl"',
          suggestion: 'level',
        },
      ],
    })
    expect(document.values).toContainEqual({ key: 'server.listen', value: '127.0.0.1:11435', origin: 'default' })
  })

  test('without any file it checks the defaults', () => {
    const { code, err } = run([])

    expect(code).toBe(0)
    expect(err).toBe('no fleet.toml, the defaults: valid\n')
  })

  test('takes the file as serve does, with --config, but not two files', () => {
    expect(run(['--config', 'other.toml'], '').err).toContain('cannot read other.toml')
    expect(run(['--config=fleet.toml'], '').err).toBe('fleet.toml: valid\n')
    expect(run(['--config', 'a.toml', 'b.toml'], '')).toMatchObject({ code: 2, out: '' })
  })

  test('a file that cannot be read exits 3, wrong usage 2', () => {
    expect(run(['other.toml'], '')).toMatchObject({ code: 3, err: expect.stringContaining('cannot read other.toml') })
    expect(run(['--strct'], '')).toMatchObject({ code: 2, err: expect.stringContaining('--strict') })
  })
})
