import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyUsage } from '../../../src/ports/usage'
import { openMemoryStore } from '../../../src/store/memory'
import { openStore } from '../../../src/store/sqlite'
import { manualClock } from './manual-clock'

const directory = mkdtempSync(join(tmpdir(), 'fleet-usage-'))
afterAll(() => rmSync(directory, { recursive: true }))

const day = (at: number) => new Date(at).toISOString().slice(0, 10)
const row = (key: string, at: number, requests: number): KeyUsage => ({
  key,
  day: day(at),
  requests,
  tokensIn: 10,
  tokensOut: 20,
  engineSeconds: 1.5,
})
const HOUR = 3_600_000
const DAY = 24 * HOUR

test('the latest row of each key and day outlives the process', () => {
  const clock = manualClock()
  const path = join(directory, 'fleet.db')
  const now = clock.now()
  const store = openStore({ path, keepTracesMs: HOUR, clock })
  store.usage.save(row('a', now, 1))
  store.usage.save(row('b', now, 1))
  clock.advance(1_000)
  store.usage.save(row('a', now, 2))
  store.usage.save(row('a', now - DAY, 7))
  store.close()

  const again = openStore({ path, keepTracesMs: HOUR, clock })

  expect(again.usage.load()).toEqual([row('a', now - DAY, 7), row('a', now, 2), row('b', now, 1)])
  again.close()
})

test('what is older than 400 days goes, what is younger stays however old the records may be', () => {
  const clock = manualClock()
  const path = join(directory, 'old.db')
  const store = openStore({ path, keepTracesMs: HOUR, clock })
  const now = clock.now()
  store.usage.save(row('a', now - 402 * DAY, 1))
  store.usage.save(row('a', now - 390 * DAY, 1))
  clock.advance(120_000)

  expect(store.usage.load().map((one) => one.day)).toEqual([day(now - 390 * DAY)])
  store.close()
})

test('without a disk it lasts as long as the process', () => {
  const store = openMemoryStore({ keepTracesMs: HOUR, clock: manualClock() })
  store.usage.save(row('a', 0, 1))
  store.usage.save(row('a', 0, 2))

  expect(store.usage.load()).toEqual([row('a', 0, 2)])
})
