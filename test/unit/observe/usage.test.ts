import { expect, test } from 'bun:test'
import { createUsage } from '../../../src/observe/usage'
import { outcome, settled } from './builders'

const MIDNIGHT = Date.UTC(2026, 0, 31)

test('a key has a row for each day in UTC, also when a request of the day before is told late', () => {
  const usage = createUsage({ load: () => [], save: () => undefined })
  const ended = (at: number) =>
    usage.hear({ ...settled(0), at, key: 'team', outcome: outcome({ tokensIn: 3, tokensOut: 2, engineMs: 500 }) })
  for (const at of [MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1, MIDNIGHT - 2]) ended(at)

  const row = { key: 'team', requests: 2, tokensIn: 6, tokensOut: 4, engineSeconds: 1 }
  expect(usage.of('team')).toEqual([
    { ...row, day: '2026-01-31' },
    { ...row, day: '2026-01-30' },
  ])
})
