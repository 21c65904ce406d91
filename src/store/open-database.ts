import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { RouterError } from '../domain/errors'
import { migrate } from './migrations'

/** While starting, another process gets this long to finish its write. */
const OPEN_BUSY_MS = 2_000
/** While serving, a lock blocks every request of this process, so the batch is rather tried again later. */
const WRITE_BUSY_MS = 50

/**
 * Opens the database and brings its schema up to date; parent folders are made. Throws a `RouterError` that says what
 * is wrong with the file and what to do.
 */
export const openDatabase = (path: string): Database => {
  let database: Database | undefined
  try {
    if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
    database = new Database(path, { create: true })
    database.run(`PRAGMA busy_timeout = ${OPEN_BUSY_MS}`)
    database.run('PRAGMA journal_mode = WAL')
    database.run('PRAGMA synchronous = NORMAL')
    migrate(database)
    database.run(`PRAGMA busy_timeout = ${WRITE_BUSY_MS}`)
    return database
  } catch (error) {
    database?.close()
    throw explained(path, error)
  }
}

const explained = (path: string, error: unknown): RouterError => {
  const message = error instanceof Error ? error.message : String(error)
  const fail = (what: string, hint: string): RouterError =>
    new RouterError('internal', `The state database ${path} ${what}`, { hint }, error)
  if (error instanceof RouterError) {
    return fail(`cannot be used. ${error.message}`, error.details.hint ?? 'Set state.path to another directory.')
  }
  const code = codeOf(error)
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return fail(`is damaged (${message}).`, 'Move the file away; fleet then starts with an empty one.')
  }
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return fail('is locked by another process.', 'End that process, or set state.path to another directory.')
  }
  return fail(`cannot be opened (${message}).`, 'Check the directory and its permissions, or set state.path.')
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
