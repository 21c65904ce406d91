import type { Database } from 'bun:sqlite'
import type { KeptVideo } from '../ports/videos'
import { pendingRows } from './pending-rows'

interface Row {
  readonly video: string
}

/** The table of videos that were begun: one row of JSON a video. */
export const videosTable = (database: Database) => {
  const insert = database.query('INSERT OR REPLACE INTO videos (id, begun_at, video) VALUES (?, ?, ?)')
  const remove = database.query('DELETE FROM videos WHERE id = ?')

  return {
    // The JSON was written by this process or an earlier one; the table is ours alone.
    load: (): readonly KeptVideo[] =>
      database
        .query<Row, []>('SELECT video FROM videos ORDER BY begun_at')
        .all()
        .map(({ video }) => JSON.parse(video) as KeptVideo),
    ...pendingRows<KeptVideo>(
      (id, video) => insert.run(id, video.begunAt, JSON.stringify(video)),
      (id) => remove.run(id),
    ),
  }
}
