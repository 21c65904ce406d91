import { expect, test } from 'bun:test'
import { spawnMany } from '../support/many'

const MB = 1024 * 1024

test('BL-Y01 a million request actors come and go: no slope in memory, registry and system are empty', async () => {
  const { rss, left, ids } = await spawnMany(1_000_000, 100_000)

  console.log(`BL-Y01 RSS in MB after each 100 000: ${rss.map((bytes) => Math.round(bytes / MB)).join(' ')}`)
  // From the second round on: the first warms up.
  expect((rss.at(-1) ?? 0) - (rss[1] ?? 0)).toBeLessThan(16 * MB)
  expect(left).toEqual({ registry: 0, reserved: 0, waiting: 0 })
  expect(ids.filter((id) => id.startsWith('request/'))).toEqual([])
}, 300_000)
