import { describe, expect, test } from 'bun:test'
import type { Admission } from '../../../src/domain/node'
import { createAdmissions } from '../../../src/observe/admissions'
import type { Closed } from '../../../src/ports/admissions'

const DAY = 86_400_000
const NOW = 1_800_000_000_000

const closed = (node: string, change: Partial<Closed> = {}): Closed => ({
  node,
  admission: 'paused',
  isConfigured: true,
  at: NOW,
  ...change,
})

/** With these rows at the start; `configured` are the nodes of the configuration. */
const begin = (rows: readonly Closed[], configured: readonly string[]) => {
  const stored = new Map(rows.map((row) => [row.node, row]))
  const admissions = createAdmissions(
    {
      load: () => [...stored.values()],
      save: (row) => void stored.set(row.node, row),
      forget: (node) => void stored.delete(node),
    },
    (node) => configured.includes(node),
    () => NOW,
  )
  return {
    admissions,
    stored: () => [...stored.values()],
    say: (node: string, admission: Admission) =>
      admissions.hear({ type: 'node.admission', at: NOW + 1, node, admission }),
  }
}

test('a pause or a drain is kept until it is undone, and the last word counts', () => {
  const { admissions, stored, say } = begin([], ['a', 'b'])
  say('a', 'paused')
  say('b', 'paused')
  // As the node tells it when a paused one is drained.
  say('b', 'open')
  say('b', 'draining')
  expect(stored()).toEqual([closed('a', { at: NOW + 1 }), closed('b', { admission: 'draining', at: NOW + 1 })])
  expect(['a', 'b', 'c'].map(admissions.of)).toEqual(['paused', 'draining', 'open'])

  say('a', 'open')
  expect(stored().map(({ node }) => node)).toEqual(['b'])
  expect(admissions.of('a')).toBe('open')
})

test('a node that is removed does not come back paused', () => {
  const { admissions, stored, say } = begin([], ['a'])
  say('a', 'paused')
  admissions.hear({ type: 'node.removed', at: NOW, node: 'a' })

  expect(stored()).toEqual([])
  expect(admissions.of('a')).toBe('open')
})

describe('at the start', () => {
  test.each<[string, Closed, Admission]>([
    ['a configured node is as it was left, however long ago', closed('a', { at: NOW - 900 * DAY }), 'paused'],
    ['one that is not in the configuration any more is forgotten', closed('gone'), 'open'],
    ['one that was found may be found again', closed('found', { isConfigured: false, at: NOW - 89 * DAY }), 'paused'],
    ['but not after months', closed('found', { isConfigured: false, at: NOW - 91 * DAY }), 'open'],
    ['one that was found and is configured now', closed('a', { isConfigured: false, at: NOW - 91 * DAY }), 'paused'],
  ])('%s', (_what, row, expected) => {
    const { admissions, stored } = begin([row], ['a'])

    expect(admissions.of(row.node)).toBe(expected)
    expect(stored()).toHaveLength(expected === 'open' ? 0 : 1)
  })
})
