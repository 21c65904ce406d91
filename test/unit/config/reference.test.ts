import { describe, expect, test } from 'bun:test'
import { fleetShape } from '../../../src/config/load'
import type { TableShape } from '../../../src/config/shape'
import { loadToml } from './load-toml'

const reference = await Bun.file(new URL('../../../fleet.toml', import.meta.url)).text()

/** The file with every line that shows a key or a table made active. */
const everything = reference.replace(/^# (?=\[|"?[a-z_*-]+"? *= )/gm, '')

const world = {
  env: { FLEET_KEY_LAPTOPS: 'fleet_a', RIG_API_KEY: 'fleet_b' },
  secrets: { '/etc/fleet/admin.key': 'fleet_c', '/etc/fleet/box-3.key': 'fleet_d' },
}

/** Every key by its path, those of lists without an index. */
const keysOf = (shape: TableShape, prefix = ''): readonly string[] =>
  Object.entries(shape.properties).flatMap(([name, inner]) => {
    const table = inner.type === 'array' ? inner.items : inner
    return table.type === 'object' ? keysOf(table, `${prefix}${name}.`) : [prefix + name]
  })

describe('fleet.toml', () => {
  test('says exactly what holds without it', () => {
    const withFile = loadToml(reference)
    const without = loadToml('')

    expect(withFile.problems).toEqual([])
    expect(withFile.config).toEqual(without.config)
  })

  test('with every line active it is valid', () => {
    const { config, problems } = loadToml(everything, world)

    expect(problems).toEqual([])
    expect(config?.nodes.map(({ name }) => name)).toEqual(['rig-4090', 'box-3'])
    expect(config?.auth.keys.map(({ name }) => name)).toEqual(['family-laptops', 'me', 'ci'])
  })

  test('shows every key that exists', () => {
    const written = loadToml(everything, world)
      .values.filter(({ origin }) => origin !== 'default')
      .map(({ key }) => key.replace(/\[\d+\]/g, ''))

    expect(keysOf(fleetShape).length).toBeGreaterThan(50)
    expect(keysOf(fleetShape).filter((key) => !written.includes(key))).toEqual([])
  })
})

describe('the file of the finished product', () => {
  test('holds nothing that is unknown: each key is read, or named as one of a later version', async () => {
    const full = await Bun.file(new URL('../../fixtures/config/full-reference.toml', import.meta.url)).text()

    const { problems } = loadToml(full, { env: { FLEET_KEY_LAPTOPS: 'a', FLEET_KEY_ADMIN: 'b', DGX_API_KEY: 'c' } })

    expect(problems.filter(({ code }) => code !== 'not_in_this_version')).toEqual([])
    expect(problems.map(({ path }) => path)).toContain('nodes[4].schedule')
  })
})
