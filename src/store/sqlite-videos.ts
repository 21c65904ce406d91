import type { Database } from 'bun:sqlite'
import type { KeptVideo } from '../ports/videos'

interface Row {
  readonly video: string
}

/** The table of videos that were begun: one row of JSON a video. */
export const videosTable = (database: Database) => {
  const insert = database.query('INSERT OR REPLACE INTO videos (id, begun_at, video) VALUES (?, ?, ?)')
  const remove = database.query('DELETE FROM videos WHERE id = ?')
  /** By id; undefined is to be deleted. */
  const pending = new Map<string, KeptVideo | undefined>()

  return {
    // The JSON was written by this process or an earlier one; the table is ours alone.
    load: (): readonly KeptVideo[] =>
      database
        .query<Row, []>('SELECT video FROM videos ORDER BY begun_at')
        .all()
        .map(({ video }) => JSON.parse(video) as KeptVideo),
    /** Until the next `write`. */
    remember: (id: string, video: KeptVideo | undefined): void => void pending.set(id, video),
    write: (): void => {
      for (const [id, video] of pending) {
        if (video === undefined) remove.run(id)
        else insert.run(id, video.begunAt, JSON.stringify(video))
      }
    },
    /** What was written is on disk. */
    forget: (): void => pending.clear(),
  }
}
