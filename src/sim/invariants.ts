import type { Fact } from '../domain/facts'
import type { Job } from '../domain/job'

/** Somebody in the waiting room. */
export interface Waiter {
  readonly job: Job
  readonly excluded: readonly string[]
  readonly unreached?: readonly unknown[]
}

/** What the checks look at; a view of the core, read between two events. */
export interface Core {
  /** Throws when the ledger contradicts itself. */
  check(): void
  /** The request holds a slot. */
  holds(request: string): boolean
  /** Everybody in the waiting room. */
  waiting(): readonly Waiter[]
  /** Counts that are zero when nothing is under way, by name. */
  left(): Readonly<Record<string, number>>
}

export interface Invariants {
  hear(fact: Fact): void
  /** The client of the request got its answer or its refusal. */
  answered(request: string): void
  breach(what: string): void
  /** After each event. */
  check(): void
  /** When all is over. */
  checkIdle(): void
  /** What was broken, oldest first. */
  readonly broken: readonly string[]
}

const RANK: Readonly<Record<Job['priority'], number>> = { critical: 0, normal: 1, batch: 2 }
const LEAVING = new Set(['start', 'load', 'bind'])
/** More than these say nothing new. */
const MOST_BROKEN = 20

const sameNeeds = (a: Job, b: Job): boolean =>
  a.models.join() === b.models.join() && a.needs.join() === b.needs.join() && a.pin === b.pin

/** What must hold of every run, whatever happens in it. */
export const createInvariants = (core: Core, now: () => number): Invariants => {
  const jobs = new Map<string, Job>()
  const settled = new Map<string, number>()
  const answers = new Map<string, number>()
  /** Requests whose failures were all of nodes that could not be reached, and those that failed otherwise. */
  const unreached = new Set<string>()
  const failed = new Set<string>()
  /** Settled since the last check. */
  let fresh: string[] = []
  const broken: string[] = []
  const startedAt = now()
  const breach = (what: string): void => {
    if (broken.length < MOST_BROKEN) broken.push(`after ${now() - startedAt} ms: ${what}`)
  }

  /** Nobody who came earlier, ranks no lower and could be served by the same nodes still waits. */
  const checkOrder = (job: Job): void => {
    for (const other of core.waiting()) {
      if (other.job.id === job.id || !sameNeeds(other.job, job)) continue
      // Not the same nodes.
      if (other.excluded.length > 0 || other.unreached !== undefined) continue
      if (RANK[other.job.priority] > RANK[job.priority]) continue
      const isElder = RANK[other.job.priority] < RANK[job.priority] || other.job.arrivedAt < job.arrivedAt
      if (isElder) breach(`${job.id} was placed before ${other.job.id}, which came first`)
    }
  }

  return {
    hear: (fact) => {
      if (fact.type === 'request.arrived') jobs.set(fact.job.id, fact.job)
      else if (fact.type === 'request.settled') {
        const count = (settled.get(fact.request) ?? 0) + 1
        settled.set(fact.request, count)
        fresh.push(fact.request)
        if (count > 1) breach(`${fact.request} settled ${count} times`)
        if (fact.outcome.end === 'failed' && unreached.has(fact.request) && !failed.has(fact.request))
          breach(`${fact.request} failed although no node has seen it`)
      } else if (fact.type === 'attempt.failed') {
        const kind = fact.failure.class === 'connect' ? unreached : failed
        kind.add(fact.request)
      } else if (fact.type === 'request.placed' && fact.attempt === 1 && LEAVING.has(fact.decision.kind)) {
        const job = jobs.get(fact.request)
        if (job !== undefined) checkOrder(job)
      } else if (fact.type === 'actor.failed') breach(`${fact.actor} broke: ${fact.message}`)
    },
    answered: (request) => {
      const count = (answers.get(request) ?? 0) + 1
      answers.set(request, count)
      if (count > 1) breach(`${request} was answered ${count} times`)
    },
    breach,
    check: () => {
      try {
        core.check()
      } catch (error) {
        breach(error instanceof Error ? error.message : String(error))
      }
      for (const request of fresh) if (core.holds(request)) breach(`${request} is settled and holds a slot`)
      fresh = []
    },
    checkIdle: () => {
      for (const [request] of jobs) {
        if (!settled.has(request)) breach(`${request} never settled`)
        if (!answers.has(request)) breach(`${request} was never answered`)
      }
      for (const [name, count] of Object.entries(core.left()))
        if (count !== 0) breach(`${count} ${name} left at the end`)
    },
    broken,
  }
}
