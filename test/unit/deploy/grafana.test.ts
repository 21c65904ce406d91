import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FILE, render } from '../../../scripts/grafana'
import { allFamilies, createFamilies } from '../../../src/observe/families'

const registered = new Map(allFamilies(createFamilies()).map((family) => [family.name, family.render()]))

/** The family behind a name in a query; a histogram has three names there. */
const familyOf = (name: string): string => {
  const base = name.replace(/_(bucket|sum|count)$/, '')
  return registered.get(base)?.includes(' histogram\n') ? base : name
}

const text = render()
const used = [...new Set(text.match(/\bfleet_[a-z_]+/g) ?? [])]

test('every metric of the dashboard is registered', () => {
  expect(used.length).toBeGreaterThan(20)
  expect(used.filter((name) => !registered.has(familyOf(name)))).toEqual([])
})

test('a histogram is asked for its buckets, sum or count, a quantile for its buckets', () => {
  const bare = used.filter((name) => registered.get(name)?.includes(' histogram\n'))

  expect(bare).toEqual([])
  for (const [, inside] of text.matchAll(/histogram_quantile\(([^\n]+)/g)) expect(inside).toContain('_bucket{')
})

test('the dashboard in the repository is the one that the table makes', () => {
  expect(readFileSync(join(import.meta.dir, '../../..', FILE), 'utf8')).toBe(text)
})
