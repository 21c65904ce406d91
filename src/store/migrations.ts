import type { Database } from 'bun:sqlite'
import { RouterError } from '../domain/errors'

/** Step n brings a database from version n to n + 1. Only ever append: databases of every version are out there. */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE decisions (
     id TEXT PRIMARY KEY,
     at REAL NOT NULL,
     model TEXT NOT NULL,
     node TEXT,
     ended TEXT,
     client_request_id TEXT,
     record TEXT NOT NULL
   ) STRICT;
   CREATE INDEX decisions_at ON decisions (at);
   CREATE INDEX decisions_model ON decisions (model, at);
   CREATE INDEX decisions_node ON decisions (node, at);
   CREATE INDEX decisions_ended ON decisions (ended, at);
   CREATE INDEX decisions_client ON decisions (client_request_id) WHERE client_request_id IS NOT NULL;
   CREATE TABLE learned_pairs (
     node TEXT NOT NULL,
     model TEXT NOT NULL,
     service_ms REAL,
     services INTEGER NOT NULL,
     load_ms REAL,
     loads INTEGER NOT NULL,
     saved_at REAL NOT NULL,
     PRIMARY KEY (node, model)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE learned_rates (
     node TEXT PRIMARY KEY,
     gb_per_second REAL NOT NULL,
     loads INTEGER NOT NULL,
     saved_at REAL NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  `ALTER TABLE learned_pairs ADD COLUMN detail TEXT;
   CREATE TABLE learned_means (
     node TEXT PRIMARY KEY,
     latency_ms REAL NOT NULL,
     tokens_per_second REAL,
     samples INTEGER NOT NULL,
     saved_at REAL NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE learned_ratios (
     model TEXT PRIMARY KEY,
     bytes REAL NOT NULL,
     tokens REAL NOT NULL,
     samples INTEGER NOT NULL,
     saved_at REAL NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE model_identities (
     model TEXT PRIMARY KEY,
     lineage TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE key_usage (
     key TEXT NOT NULL,
     day TEXT NOT NULL,
     requests INTEGER NOT NULL,
     tokens_in INTEGER NOT NULL,
     tokens_out INTEGER NOT NULL,
     engine_seconds REAL NOT NULL,
     PRIMARY KEY (key, day)
   ) STRICT, WITHOUT ROWID;`,
  // One index by time instead of four, with all that lists filter by: writing a record costs a third of what it did.
  `DROP INDEX decisions_model;
   DROP INDEX decisions_node;
   DROP INDEX decisions_ended;
   DROP INDEX decisions_at;
   CREATE INDEX decisions_at ON decisions (at, model, node, ended);`,
  `CREATE TABLE videos (
     id TEXT PRIMARY KEY,
     begun_at REAL NOT NULL,
     video TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  // What is looked for is what went wrong, and that is rare: a completed request is no part of it and costs nothing.
  `CREATE INDEX decisions_uncompleted ON decisions (ended, at, model, node) WHERE ended <> 'completed';`,
  `CREATE TABLE node_admissions (
     node TEXT PRIMARY KEY,
     admission TEXT NOT NULL,
     configured INTEGER NOT NULL,
     at REAL NOT NULL
   ) STRICT, WITHOUT ROWID;`,
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** Brings the schema up to date, each step in one transaction. Refuses a database of a newer fleet. */
export const migrate = (database: Database): void => {
  const version = schemaVersion(database)
  if (version > SCHEMA_VERSION) {
    throw new RouterError(
      'internal',
      `It was written by a newer fleet (schema ${version}, this one knows ${SCHEMA_VERSION}).`,
      { hint: 'Run that version again, or set state.path to another directory.' },
    )
  }
  MIGRATIONS.slice(version).forEach((step, i) => {
    database
      .transaction(() => {
        database.run(step)
        database.run(`PRAGMA user_version = ${version + i + 1}`)
      })
      .immediate()
  })
}

const schemaVersion = (database: Database): number => {
  const row = database.query<{ user_version: number }, []>('PRAGMA user_version').get()
  return row?.user_version ?? 0
}
