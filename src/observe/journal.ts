import type { Fact } from '../domain/facts'
import type { Journal } from '../ports/journal'

/** Something that wants to hear facts: log, metrics, records, live streams. `hear` is synchronous and cheap. */
export interface Sink {
  readonly name: string
  hear(fact: Fact): void
}

export interface CountingJournal extends Journal {
  /** How often each sink threw; a sink that never did is absent. */
  failures(): Readonly<Record<string, number>>
}

/**
 * Hands every fact to every sink, in the order given. A sink that throws disturbs neither the caller nor the others:
 * it is counted, and its first failure is told to the others as `actor.failed`.
 */
export const createJournal = (sinks: readonly Sink[]): CountingJournal => {
  const failures = new Map<string, number>()

  const tell = (sink: Sink, fact: Fact): void => {
    try {
      sink.hear(fact)
    } catch (error) {
      const count = (failures.get(sink.name) ?? 0) + 1
      failures.set(sink.name, count)
      if (count === 1) report(sink, fact.at, error)
    }
  }

  const report = (broken: Sink, at: number, error: unknown): void => {
    const message = error instanceof Error ? error.message : String(error)
    const actor = `journal/${broken.name}`
    for (const sink of sinks) {
      if (sink !== broken) tell(sink, { type: 'actor.failed', at, actor, machine: 'journal', message, restarted: true })
    }
  }

  return {
    record(fact) {
      for (const sink of sinks) tell(sink, fact)
    },
    failures: () => Object.fromEntries(failures),
  }
}
