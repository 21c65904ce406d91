import { expect, test } from 'bun:test'
import type { Fact } from '../../../src/domain/facts'
import { createJournal, type Sink } from '../../../src/observe/journal'

const fact: Fact = { type: 'node.removed', at: 5, node: 'rig' }

const collecting = (): Sink & { heard: Fact[] } => {
  const heard: Fact[] = []
  return { name: 'collector', heard, hear: (one) => void heard.push(one) }
}

const broken: Sink = {
  name: 'broken',
  hear: () => {
    throw new Error('disk full')
  },
}

test('every sink hears every fact in order', () => {
  const [one, two] = [collecting(), collecting()]
  const journal = createJournal([one, two])

  journal.record(fact)
  journal.record({ ...fact, at: 6 })

  expect(one.heard.map(({ at }) => at)).toEqual([5, 6])
  expect(two.heard).toEqual(one.heard)
})

test('a sink that throws is isolated, counted, and told to the others once', () => {
  const [before, after] = [collecting(), collecting()]
  const journal = createJournal([before, broken, after])

  for (let i = 0; i < 3; i++) journal.record(fact)

  expect(journal.failures()).toEqual({ broken: 3 })
  const report: Fact = {
    type: 'actor.failed',
    at: 5,
    actor: 'journal/broken',
    machine: 'journal',
    message: 'disk full',
    restarted: true,
  }
  expect(before.heard).toEqual([fact, report, fact, fact])
  expect(after.heard.filter(({ type }) => type === 'actor.failed')).toHaveLength(1)
  expect(after.heard.filter(({ type }) => type === 'node.removed')).toHaveLength(3)
})

test('two broken sinks report each other without end in sight', () => {
  const other = { ...broken, name: 'other' }
  const healthy = collecting()
  const journal = createJournal([broken, other, healthy])

  journal.record(fact)
  journal.record(fact)

  const reports = healthy.heard.flatMap((one) => (one.type === 'actor.failed' ? [one.actor] : []))
  expect(reports.sort()).toEqual(['journal/broken', 'journal/other'])
})
