import { Database } from 'bun:sqlite'
import { afterAll, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCheckpointThread } from '../../../src/checkpoint-thread'
import { until } from '../../support/fakes'

const directory = mkdtempSync(join(tmpdir(), 'fleet-checkpoints-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** A database with about 4 MB in the log beside it and nothing in its file. */
const written = (name: string): { readonly path: string; readonly database: Database; write(): void } => {
  const path = join(directory, name)
  const database = new Database(path, { create: true })
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA wal_autocheckpoint = 0')
  database.run('CREATE TABLE t (x TEXT)')
  const write = () => database.run('INSERT INTO t VALUES (?)', ['x'.repeat(4_000_000)])
  write()
  return { path, database, write }
}

test('what was written arrives in the file, again and again, while the writer goes on', async () => {
  const thread = createCheckpointThread()
  const { path, database, write } = written('a.db')
  expect(statSync(path).size).toBeLessThan(100_000)

  thread.ask(path)
  thread.ask(path)
  await until(() => statSync(path).size > 4_000_000, 5_000)
  write()
  await until(() => {
    thread.ask(path)
    return statSync(path).size > 8_000_000
  }, 5_000)

  expect(database.query('SELECT count(*) AS n FROM t').get()).toEqual({ n: 2 })
  thread.close()
  thread.ask(path)
  database.close()
})

test('a thread that cannot open the file is ended, and nobody hears of it', async () => {
  const ended = spyOn(Worker.prototype, 'terminate')
  const thread = createCheckpointThread()

  thread.ask(join(directory, 'absent', 'b.db'))
  await until(() => ended.mock.calls.length === 1, 5_000)
  thread.ask(join(directory, 'absent', 'b.db'))
  thread.close()

  ended.mockRestore()
})
