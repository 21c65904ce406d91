import { expect, test } from 'bun:test'
import { systemRandom } from '../../../src/system'

test('ids are distinct, as long as the port says, and those of a later time come later', async () => {
  const ids = Array.from({ length: 5_000 }, () => systemRandom.id('req'))
  await Bun.sleep(2)
  const later = systemRandom.id('req')

  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-z]{12}$/)
  expect(ids.every((id) => id.slice(0, 'req_'.length + 8) < later.slice(0, 'req_'.length + 8))).toBe(true)
})
