import type { DecisionRecord } from '../domain/record'
import { recordMatches } from '../domain/record-keys'
import type { Clock } from '../ports/clock'
import type { DecisionQuery } from '../ports/decisions'
import type { Checkpoints } from './checkpoints'
import { openDatabase } from './open-database'
import { admissionsTable } from './sqlite-admissions'
import { identitiesTable } from './sqlite-identities'
import { learnedTables } from './sqlite-learned'
import { recordsTable } from './sqlite-records'
import { usageTable } from './sqlite-usage'
import { videosTable } from './sqlite-videos'
import { MAX_LIST, type Store } from './store'
import { SlotMap } from '../domain/slot-map'

export interface StoreOptions {
  /** The file, or `:memory:`. */
  readonly path: string
  /** Records older than this are deleted. Read at each pruning. */
  readonly keepTracesMs: number
  readonly clock: Clock
  /** Absent: SQLite makes them itself, in the middle of a batch. */
  readonly checkpoints?: Checkpoints
}

/** Records between two checkpoints; about 1.5 MB. */
const CHECKPOINT_ROWS = 1_000
/** Where somebody else makes them, pages (of 4 KB) after which SQLite does not rely on that any more. */
const OWN_CHECKPOINT_PAGES = 8_000
/** What the log beside the database shrinks to once all of it is moved. */
const MAX_REST_BYTES = 4_194_304
const FLUSH_EVERY_MS = 250
/** Records a transaction: about 1 ms of blocked event loop. */
const BATCH_ROWS = 100
/** Between two batches when more is pending than one takes: room for 10 000 requests/s. */
const NEXT_BATCH_MS = 10
/** After a batch that could not be written (disk full, locked). */
const RETRY_MS = 1_000
/** Records that may wait for the disk; beyond it the oldest are given up. */
const MAX_PENDING = 20_000
/** Dropped at once beyond that: finding the oldest walks over all that were dropped before it. */
const DROP_ROWS = 500
const PRUNE_EVERY_MS = 60_000
/** Rows deleted at once, and the pause before the next ones. */
const PRUNE_ROWS = 200
const PRUNE_PAUSE_MS = 250

/**
 * The store in one SQLite file. Saving only remembers the record: it is written in batches on a timer.
 * Throws a `RouterError` when the file is damaged, locked or of a newer fleet.
 */
export const openStore = (options: StoreOptions): Store => {
  const { path, clock, checkpoints } = options
  const database = openDatabase(path)
  database.run(`PRAGMA journal_size_limit = ${MAX_REST_BYTES}`)
  if (checkpoints) database.run(`PRAGMA wal_autocheckpoint = ${OWN_CHECKPOINT_PAGES}`)
  const records = recordsTable(database)
  const learned = learnedTables(database)
  const usage = usageTable(database)
  const identities = identitiesTable(database)
  const videos = videosTable(database)
  const admissions = admissionsTable(database)
  /** Settled and not on disk yet, oldest save first; their JSON is made with the batch, when no request waits for it. */
  const pending = new SlotMap<DecisionRecord>()
  let flushTimer: unknown
  /** Records written since a checkpoint was last asked for. */
  let unmoved = 0
  let lost = 0
  let problem: string | undefined

  const writeBatch = database.transaction((batch: readonly DecisionRecord[]) => {
    const now = clock.now()
    for (const record of batch) records.insert(record)
    learned.write(now)
    usage.write()
    identities.write()
    videos.write()
    admissions.write()
  })

  /** Whether everything of the batch is on disk. */
  const flush = (): boolean => {
    const batch = [...pending.values().take(BATCH_ROWS)]
    try {
      writeBatch.immediate(batch)
    } catch (error) {
      problem = messageOf(error)
      return false
    }
    problem = undefined
    for (const { id } of batch) pending.delete(id)
    learned.written()
    usage.forget()
    identities.forget()
    videos.forget()
    admissions.forget()
    unmoved += batch.length
    if (unmoved >= CHECKPOINT_ROWS) {
      unmoved = 0
      checkpoints?.ask(path)
    }
    return true
  }

  const schedule = (afterMs: number): void => {
    flushTimer ??= clock.setTimeout(() => {
      flushTimer = undefined
      const written = flush()
      if (!written) schedule(RETRY_MS)
      else if (pending.size > 0) schedule(NEXT_BATCH_MS)
    }, afterMs)
  }

  /** A whole batch waits no longer: the sooner its records are on disk, the fewer of them outlive a garbage collection. */
  const hurry = (): void => {
    clock.clearTimeout(flushTimer)
    flushTimer = undefined
    schedule(0)
  }

  const prune = (): void => {
    const deleted = attempt(() => records.deleteBefore(clock.now() - options.keepTracesMs, PRUNE_ROWS)) ?? 0
    const isMore = deleted === PRUNE_ROWS
    if (!isMore) {
      attempt(learned.prune)
      attempt(() => usage.prune(clock.now()))
    }
    pruneTimer = clock.setTimeout(prune, isMore ? PRUNE_PAUSE_MS : PRUNE_EVERY_MS)
  }
  let pruneTimer = clock.setTimeout(prune, PRUNE_PAUSE_MS)

  /** A database that breaks while serving costs history, never a request. */
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      problem = messageOf(error)
      return undefined
    }
  }

  const list = (query: DecisionQuery): DecisionRecord[] => {
    const limit = Math.min(query.limit, MAX_LIST)
    const unwritten = [...pending.values()].filter((record) => recordMatches(record, query))
    const written = attempt(() => records.list({ ...query, limit })) ?? []
    return [...unwritten, ...written.filter(({ id }) => !pending.has(id))].sort((a, b) => b.at - a.at).slice(0, limit)
  }

  /** What changed is written with the next batch. */
  const later =
    <T>(note: (changed: T) => void) =>
    (changed: T): void => {
      note(changed)
      schedule(FLUSH_EVERY_MS)
    }

  return {
    save: (record) => {
      pending.set(record.id, record)
      if (pending.size > MAX_PENDING) lost += dropOldest(pending)
      if (pending.size === BATCH_ROWS && problem === undefined) hurry()
      else schedule(FLUSH_EVERY_MS)
    },
    get: (id) => pending.get(id) ?? attempt(() => records.get(id)),
    last: () => list({ limit: 1 })[0],
    list,
    learned: {
      load: () => attempt(learned.load) ?? { pairs: [], rates: [], means: [], ratios: [] },
      save: later(learned.remember),
      forget: (node) => void attempt(() => learned.forget(node)),
    },
    identities: {
      load: () => attempt(identities.load) ?? [],
      save: later((lineage) => identities.remember(lineage.key, lineage)),
    },
    admissions: {
      load: () => attempt(admissions.load) ?? [],
      save: later((closed) => admissions.remember(closed.node, closed)),
      forget: later((node) => admissions.remember(node, undefined)),
    },
    usage: { load: () => attempt(usage.load) ?? [], save: later(usage.remember) },
    videos: {
      load: () => attempt(videos.load) ?? [],
      save: later((video) => videos.remember(video.id, video)),
      forget: later((id) => videos.remember(id, undefined)),
    },
    trouble: () => ({ lost, ...(problem !== undefined && { message: problem }) }),
    close: () => {
      clock.clearTimeout(flushTimer)
      clock.clearTimeout(pruneTimer)
      while (flush() && pending.size > 0);
      lost += pending.size
      checkpoints?.close()
      // The thread may still have the file open, and then closing it here moves nothing.
      attempt(() => database.run('PRAGMA wal_checkpoint(TRUNCATE)'))
      database.close()
    },
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const dropOldest = (records: SlotMap<unknown>): number => {
  for (const id of [...records.keys().take(DROP_ROWS)]) records.delete(id)
  return DROP_ROWS
}
