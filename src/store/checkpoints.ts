/**
 * SQLite collects what is written in a log beside the database; a checkpoint moves it over, and waits for the disk at both
 * ends: 10 to 50 ms in which nothing else would run, on the card of a small machine far more. So somebody else does it.
 */
export interface Checkpoints {
  /** Asks for one of the database at `path`; returns at once, also when one is under way. */
  ask(path: string): void
  close(): void
}
