import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { RouterError } from '../../../src/domain/errors'
import { MAX_PAIRS } from '../../../src/learning/learned'
import { createSamples } from '../../../src/learning/service-times'
import { migrate, SCHEMA_VERSION } from '../../../src/store/migrations'
import { openStore } from '../../../src/store/sqlite'
import { recordsTable } from '../../../src/store/sqlite-records'
import { outcome, record } from '../observe/builders'
import { manualClock } from './manual-clock'

const directory = mkdtempSync(join(tmpdir(), 'fleet-sqlite-'))
afterAll(() => rmSync(directory, { recursive: true }))

let files = 0
const newPath = () => join(directory, `${files++}`, 'fleet.db')
const WEEK = 7 * 24 * 3_600_000
const openAt = (path: string, clock = manualClock()) => openStore({ path, keepTracesMs: WEEK, clock })
const settled = (id: string, at = manualClock().now()) => record({ id, at, outcome: { ...outcome(), totalMs: 1 } })
const rowsIn = (path: string): number => {
  const reader = new Database(path, { readonly: true })
  const row = reader.query<{ n: number }, []>('SELECT count(*) AS n FROM decisions').get()
  reader.close()
  return row?.n ?? -1
}
const refusalOf = (path: string): RouterError => {
  try {
    openAt(path).close()
  } catch (error) {
    if (error instanceof RouterError) return error
  }
  throw new Error('it was opened')
}

test('saving writes nothing by itself; a few records wait for the timer', () => {
  const clock = manualClock()
  const path = newPath()
  const store = openAt(path, clock)
  for (let i = 0; i < 99; i++) store.save(settled(`req_${i}`))

  clock.advance(249)
  expect(rowsIn(path)).toBe(0)
  clock.advance(1)
  expect(rowsIn(path)).toBe(99)
  store.close()
})

test('a whole batch is written as soon as nothing else runs, the next ones with room between them', () => {
  const clock = manualClock()
  const path = newPath()
  const store = openAt(path, clock)
  for (let i = 0; i < 250; i++) store.save(settled(`req_${i}`))

  expect(rowsIn(path)).toBe(0)
  clock.advance(0)
  expect(rowsIn(path)).toBe(100)
  clock.advance(9)
  expect(rowsIn(path)).toBe(100)
  clock.advance(1)
  expect(rowsIn(path)).toBe(200)
  clock.advance(10)
  expect(rowsIn(path)).toBe(250)
  store.close()
})

test('closing writes what is pending and the next start reads it', () => {
  const path = newPath()
  const first = openAt(path)
  for (let i = 0; i < 1_200; i++) first.save(settled(`req_${i}`))
  first.close()

  const second = openAt(path)
  expect(rowsIn(path)).toBe(1_200)
  expect(second.get('req_1199')).toEqual(settled('req_1199'))
  second.close()
})

test('a locked database keeps records pending and writes them later', () => {
  const clock = manualClock()
  const path = newPath()
  const store = openAt(path, clock)
  const other = new Database(path)
  other.run('BEGIN IMMEDIATE')
  store.save(settled('req_1'))

  clock.advance(300)
  expect(store.trouble()).toEqual({ lost: 0, message: 'database is locked' })
  expect(store.get('req_1')?.id).toBe('req_1')
  expect(store.list({ limit: 5, node: 'rig' }).map(({ id }) => id)).toEqual(['req_1'])
  expect(store.last()?.id).toBe('req_1')

  other.run('ROLLBACK')
  other.close()
  clock.advance(2_000)
  expect(store.trouble()).toEqual({ lost: 0 })
  expect(rowsIn(path)).toBe(1)
  store.close()
})

test('while nothing can be written memory stays bounded and losses are counted', () => {
  const path = newPath()
  const store = openAt(path)
  const other = new Database(path)
  other.run('BEGIN IMMEDIATE')
  const one = settled('x')
  for (let i = 0; i < 20_010; i++) store.save({ ...one, id: `req_${i}` })

  expect(store.trouble().lost).toBe(500)
  expect(store.get('req_499')).toBeUndefined()
  expect(store.get('req_500')?.id).toBe('req_500')
  expect(store.get('req_20009')?.id).toBe('req_20009')
  store.close()
  other.close()
})

test('old records are deleted in small steps', () => {
  const clock = manualClock()
  const path = newPath()
  const store = openAt(path, clock)
  for (let i = 0; i < 450; i++) store.save(settled(`req_${i}`, clock.now() - WEEK - 1))
  clock.advance(100)
  expect(rowsIn(path)).toBe(450)
  const left: number[] = []
  for (let i = 0; i < 4; i++) {
    clock.advance(i === 0 ? 150 : 250)
    left.push(rowsIn(path))
  }

  expect(left).toEqual([250, 50, 0, 0])
  store.close()
})

test('a damaged file is named, with what to do', () => {
  const path = join(directory, 'damaged.db')
  writeFileSync(path, 'not a database at all '.repeat(500))

  const refusal = refusalOf(path)

  expect(refusal.message).toBe(`The state database ${path} is damaged (file is not a database).`)
  expect(refusal.details.hint).toBe('Move the file away; fleet then starts with an empty one.')
})

test('a database of a newer fleet is left alone', () => {
  const path = newPath()
  openAt(path).close()
  const newer = new Database(path)
  newer.run(`PRAGMA user_version = ${SCHEMA_VERSION + 3}`)
  newer.close()

  expect(refusalOf(path).message).toBe(
    `The state database ${path} cannot be used. It was written by a newer fleet (schema ${SCHEMA_VERSION + 3}, this one knows ${SCHEMA_VERSION}).`,
  )
})

test('a folder that cannot be written is named', () => {
  writeFileSync(join(directory, 'file'), '')
  const refusal = refusalOf(join(directory, 'file', 'fleet.db'))

  expect(refusal.message).toContain('cannot be opened')
  expect(refusal.details.hint).toContain('state.path')
})

test('damage found while serving costs history and not the caller', () => {
  const path = newPath()
  const store = openAt(path)
  const other = new Database(path)
  other.run('DROP TABLE decisions')
  other.close()

  expect(store.get('req_1')).toBeUndefined()
  expect(store.list({ limit: 5 })).toEqual([])
  expect(store.trouble().message).toContain('decisions')
  store.close()
})

test('BL-L05: a million samples over 200 pairs are 200 rows, read in well under 2 s', () => {
  const path = newPath()
  const clock = manualClock()
  const first = openAt(path, clock)
  const samples = createSamples(first.learned)
  for (let i = 0; i < 1_000_000; i++) {
    samples.addService({ node: `n${i % 20}`, model: `m${i % 200}`, durationMs: i % 1_000, firstByteMs: 1 })
    if (i % 100_000 === 0) clock.advance(300)
  }
  first.close()

  const startedAt = performance.now()
  const second = openAt(path)
  const restored = createSamples(second.learned)
  const tookMs = performance.now() - startedAt

  expect(restored.size()).toBe(200)
  expect(restored.service('n1', 'm1')).toEqual(samples.service('n1', 'm1'))
  expect(restored.service('n1', 'm1')?.samples).toBe(5_000)
  expect(restored.p75('n1', 'm1')).toBe(samples.p75('n1', 'm1') ?? 0)
  expect(restored.nodeMeans('n1')).toEqual(samples.nodeMeans('n1'))
  expect(tookMs).toBeLessThan(2_000)
  second.close()
}, 60_000)

test('BL-L05: everything that is ever kept is read in under 2 s as well', () => {
  const path = newPath()
  const clock = manualClock()
  const first = openAt(path, clock)
  const speed = { tokens: 400.123456789, ms: 1_234.56789, samples: 1_000 }
  const ranks = Array.from({ length: 33 }, (_, i) => i * 123.456789)
  const pairs = Array.from({ length: MAX_PAIRS }, (_, i) => ({
    node: `n${i % 50}`,
    model: `m${i}`,
    serviceMs: 5,
    services: 1_000,
    loads: 0,
    window: { size: 500, ranks },
    prefill: speed,
    decode: Object.fromEntries(Array.from({ length: 8 }, (_entry, at) => [String(at + 1), speed])),
    parallelism: { slots: 2, tryAfter: 20 },
  }))
  first.learned.save({ pairs })
  first.close()

  const startedAt = performance.now()
  const second = openAt(path)
  const restored = createSamples(second.learned)
  const tookMs = performance.now() - startedAt

  expect(restored.size()).toBe(MAX_PAIRS)
  expect(restored.parallelism.of('n1', 'm1')?.slots).toBe(2)
  expect(tookMs).toBeLessThan(2_000)
  second.close()
}, 30_000)

/** As the first version made them. */
const FIRST_TABLES = [
  `CREATE TABLE decisions (
    id TEXT PRIMARY KEY, at REAL NOT NULL, model TEXT NOT NULL, node TEXT, ended TEXT, client_request_id TEXT,
    record TEXT NOT NULL
  ) STRICT`,
  'CREATE INDEX decisions_at ON decisions (at)',
  'CREATE INDEX decisions_model ON decisions (model, at)',
  'CREATE INDEX decisions_node ON decisions (node, at)',
  'CREATE INDEX decisions_ended ON decisions (ended, at)',
  'CREATE INDEX decisions_client ON decisions (client_request_id) WHERE client_request_id IS NOT NULL',
  `CREATE TABLE learned_pairs (
    node TEXT NOT NULL, model TEXT NOT NULL, service_ms REAL, services INTEGER NOT NULL, load_ms REAL,
    loads INTEGER NOT NULL, saved_at REAL NOT NULL, PRIMARY KEY (node, model)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE learned_rates (
    node TEXT PRIMARY KEY, gb_per_second REAL NOT NULL, loads INTEGER NOT NULL, saved_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID`,
  'PRAGMA user_version = 1',
]

const ofFirstVersion = (path: string): Database => {
  mkdirSync(dirname(path))
  const old = new Database(path)
  for (const statement of FIRST_TABLES) old.run(statement)
  return old
}

test('what an earlier version wrote is kept, without what it did not know', () => {
  const path = newPath()
  const old = ofFirstVersion(path)
  old.run("INSERT INTO learned_pairs VALUES ('rig', 'm', 900, 12, NULL, 0, 1)")
  old.close()

  const database = new Database(path)
  migrate(database)
  expect(database.query('SELECT node, services, detail FROM learned_pairs').all()).toEqual([
    { node: 'rig', services: 12, detail: null },
  ])
  database.close()
})

test('records of an earlier version are found by id, client id, filter and time, beside new ones', () => {
  const path = newPath()
  const now = manualClock().now()
  const old = ofFirstVersion(path)
  const insert = old.query('INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)')
  const before = ['a', 'b', 'c'].map((id, i) => settled(`req_${id}`, now - 10 + i))
  for (const one of before)
    insert.run(one.id, one.at, 'qwen3:8b', 'rig', 'completed', `client_${one.id}`, JSON.stringify(one))
  old.close()

  const store = openAt(path)
  store.save(settled('req_d', now))
  const ids = (filter: object) => store.list({ limit: 10, ...filter }).map(({ id }) => id)

  expect(store.get('req_b')).toEqual(settled('req_b', now - 9))
  expect(ids({})).toEqual(['req_d', 'req_c', 'req_b', 'req_a'])
  expect(ids({ node: 'rig', model: 'qwen3:8b', end: 'completed' })).toEqual(['req_d', 'req_c', 'req_b', 'req_a'])
  expect(ids({ clientRequestId: 'client_req_a' })).toEqual(['req_a'])
  store.close()
})

test('a record that completed costs three index entries at most, and filters read no record that they leave out', () => {
  const path = newPath()
  openAt(path).close()
  const database = new Database(path)
  const namesOf = (sql: string) =>
    database
      .query<{ name: string }, []>(sql)
      .all()
      .map(({ name }) => name)

  expect(namesOf('PRAGMA index_list(decisions)').toSorted()).toEqual([
    'decisions_at',
    'decisions_client',
    'decisions_uncompleted',
    'sqlite_autoindex_decisions_1',
  ])
  expect(namesOf('PRAGMA index_info(decisions_at)')).toEqual(['at', 'model', 'node', 'ended'])
  expect(namesOf('PRAGMA index_info(decisions_uncompleted)')).toEqual(['ended', 'at', 'model', 'node'])
  database.close()
})

test('what did not complete is found without walking over what did', () => {
  const path = newPath()
  const store = openAt(path)
  store.save(settled('req_done'))
  store.save({ ...settled('req_failed'), outcome: { ...outcome({ end: 'failed' }), totalMs: 1 } })
  store.close()
  const database = new Database(path)
  const table = recordsTable(database)
  const asked = spyOn(database, 'query')

  expect(table.list({ end: 'failed', limit: 5 }).map(({ id }) => id)).toEqual(['req_failed'])

  const [sql] = asked.mock.calls.at(-1) ?? []
  asked.mockRestore()
  const plan = database.query<{ detail: string }, [string, number]>(`EXPLAIN QUERY PLAN ${sql}`).all('failed', 5)
  expect(plan.map(({ detail }) => detail)).toEqual(['SEARCH decisions USING INDEX decisions_uncompleted (ended=?)'])
  expect(table.list({ end: 'completed', limit: 5 }).map(({ id }) => id)).toEqual(['req_done'])
  database.close()
})

describe('checkpoints by somebody else', () => {
  const openWith = (path: string) => {
    const asked: string[] = []
    const clock = manualClock()
    let closed = 0
    const checkpoints = {
      ask: (of: string) => void asked.push(of),
      close: () => {
        closed += 1
      },
    }
    const store = openStore({ path, keepTracesMs: WEEK, clock, checkpoints })
    const save = (from: number, to: number) => {
      for (let i = from; i < to; i++) store.save(settled(`req_${i}`))
      clock.advance(1_000)
    }
    return { store, asked, closed: () => closed, save }
  }

  test('are asked for after every thousand records, and SQLite makes none itself', () => {
    const path = newPath()
    const { store, asked, save } = openWith(path)
    save(0, 900)
    expect(asked).toEqual([])

    save(900, 4_000)
    expect(asked).toEqual(Array(4).fill(path))
    // All of it still stands in the log beside the file.
    expect(statSync(path).size).toBeLessThan(100_000)
    expect(rowsIn(path)).toBe(4_000)
    store.close()
  })

  test('closing ends them and leaves one file', () => {
    const path = newPath()
    const { store, closed, save } = openWith(path)
    save(0, 1_200)
    const reader = new Database(path)
    expect(reader.query('SELECT count(*) AS n FROM decisions').get()).toEqual({ n: 1_200 })
    store.close()

    expect(closed()).toBe(1)
    expect(statSync(path).size).toBeGreaterThan(400_000)
    expect(statSync(`${path}-wal`).size).toBe(0)
    reader.close()
  })
})
