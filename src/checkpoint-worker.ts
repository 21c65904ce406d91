/** The thread behind `checkpoint-thread.ts`: gets the path of a database, answers when its checkpoint is over. */
import { Database } from 'bun:sqlite'

declare const self: Worker

/** One router has one database. */
let database: Database | undefined

self.onmessage = ({ data }: MessageEvent<string>) => {
  database ??= new Database(data, { readwrite: true })
  // Passive: it moves what it can without making the writer wait.
  database.run('PRAGMA wal_checkpoint(PASSIVE)')
  self.postMessage('done')
}
