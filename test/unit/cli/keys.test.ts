import { describe, expect, test } from 'bun:test'
import { keys } from '../../../src/cli/keys'
import { hashKey } from '../../../src/config/hash-key'
import { loadToml } from '../config/load-toml'

const run = (...args: string[]) => {
  let out = ''
  let err = ''
  const code = keys(args, {
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

const KEY = /\bfleet_[\w-]{43}(?![\w-])/

describe('fleet keys add', () => {
  test('prints the key apart from the lines that let it in', () => {
    const { code, out, err } = run('add', 'laptops')

    const key = KEY.exec(err)?.[0] ?? ''
    const { config } = loadToml(`[server]\nlisten = ":11435"\n${out}`)
    expect(code).toBe(0)
    expect(out).not.toContain(key)
    expect(config?.auth.keys).toEqual([{ name: 'laptops', sha256: hashKey(key), scopes: ['inference'] }])
  })

  test('makes another key each time', () => {
    expect(KEY.exec(run('add', 'a').err)?.[0]).not.toBe(KEY.exec(run('add', 'a').err)?.[0])
  })

  test('--json prints one document', () => {
    const made = JSON.parse(run('add', 'a', '--json').out)

    expect(made).toEqual({
      name: 'a',
      key: expect.stringMatching(KEY),
      key_hash: `sha256:${hashKey(made.key)}`,
      scopes: ['inference'],
    })
  })

  test.each([[['add']], [['add', 'a/b']], [['revoke', 'a']], [['add', 'a', 'b']]])('%j is wrong usage', (args) => {
    const { code, out } = run(...args)

    expect({ code, out }).toEqual({ code: 2, out: '' })
  })
})
