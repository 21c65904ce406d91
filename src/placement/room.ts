import { DEFAULT_PRIORITIES } from '../domain/config'
import { type Job, modelKey } from '../domain/job'
import type { Unreached } from '../domain/placement'
import { SlotMap } from '../domain/slot-map'

export type Standing = 'held' | 'waiting'

/** A request that asks for a node. */
export interface Asker {
  readonly job: Job
  readonly attempt: number
  /** Nodes, or models of one, that failed it. */
  readonly excluded: readonly string[]
  /** Nodes that it could not reach; they are kept from it until they answer a poll. */
  readonly unreached?: readonly Unreached[]
}

/** A request that is not bound anywhere yet. */
export interface Entry extends Asker {
  standing: Standing
  /** The node that a late policy has in mind. */
  tentative?: string
  reason: string
  /** Of its class; lower goes first. */
  rank: number
  readonly group: string
  /** Neighbours in its group, oldest first. */
  prev: Entry | undefined
  next: Entry | undefined
}

interface Group {
  head: Entry | undefined
  tail: Entry | undefined
  size: number
}

/**
 * Everybody who waits for a decision, in groups whose members can be served by exactly the same nodes: when the oldest of
 * a group cannot be placed, neither can the others, so one look per group is enough. Within a group by priority, then
 * by arrival, also for those that come back. Bounded by the caller through `size` and `sizeOf`.
 */
export interface Room {
  add(asker: Asker, standing: Standing, reason: string, tentative?: string): Entry
  remove(request: string): Entry | undefined
  get(request: string): Entry | undefined
  /** Somebody who can be served by the same nodes waits and goes before this job. */
  hasElder(asker: Omit<Asker, 'attempt'>): boolean
  /** By class, then by arrival, this job goes before that entry. */
  goesBefore(job: Job, entry: Entry): boolean
  /** The head of every group, oldest arrival first. */
  heads(): readonly Entry[]
  /** All held entries, oldest first. */
  held(): readonly Entry[]
  entries(): readonly Entry[]
  readonly size: number
  readonly heldCount: number
  sizeOf(model: string): number
  setStanding(entry: Entry, standing: Standing, reason: string, tentative?: string): void
  /** Those whose rank is another one now take the place that it gives them. */
  reorder(): void
  /** How many of the same model go before this job. */
  ahead(job: Job): number
}

/** Where a job's class stands among the classes; lower goes first. */
export type RankOf = (job: Job) => number

const rankByDefault: RankOf = ({ priority }) => DEFAULT_PRIORITIES.order.indexOf(priority)

type Place = Pick<Entry, 'rank' | 'job'>

/** By class, then by arrival. */
const comparePlaces = (a: Place, b: Place): number => a.rank - b.rank || a.job.arrivedAt - b.job.arrivedAt

const isBefore = (a: Place, b: Place): boolean => comparePlaces(a, b) < 0

/** Windows of less than so many tokens are rare, so shorter prompts are all alike. */
const SHORT_TOKENS = 4_096

/** Prompts of one length, to a factor of two: a long one may fit into fewer windows, and must not keep short ones waiting. */
const lengthClass = ({ promptTokens }: Job): number =>
  Math.max(0, Math.ceil(Math.log2(promptTokens.value / SHORT_TOKENS)))

const groupOf = ({ job, excluded, unreached = [] }: Omit<Asker, 'attempt'>): string =>
  // Not joined by characters that names may hold: a client could put its request into the group of others.
  JSON.stringify([
    job.models.map(modelKey),
    job.needs,
    job.pin ?? '',
    job.policy ?? '',
    job.contextTokens ?? '',
    lengthClass(job),
    job.standInNeeds ?? [],
    [...excluded].sort(),
    ...unreached.map(({ node, since }) => [node, since]),
  ])

export const createRoom = (rankOf: RankOf = rankByDefault): Room => {
  const entries = new SlotMap<Entry>()
  const groups = new Map<string, Group>()
  const perModel = new Map<string, number>()
  let held = 0

  /** The last that was taken out: one that asks again mostly comes back at once, and to where it stood. */
  let left: Entry | undefined
  const isItsPlace = ({ job, group, rank, prev, next }: Entry, entry: Entry, { head }: Group): boolean =>
    job.id === entry.job.id &&
    group === entry.group &&
    rank === entry.rank &&
    (prev === undefined ? head === next : prev.next === next && entries.get(prev.job.id) === prev)

  const insert = (entry: Entry): void => {
    const group = groups.get(entry.group) ?? { head: undefined, tail: undefined, size: 0 }
    groups.set(entry.group, group)
    let before = group.tail
    if (left !== undefined && isItsPlace(left, entry, group)) before = left.prev
    else while (before !== undefined && isBefore(entry, before)) before = before.prev
    entry.prev = before
    entry.next = before === undefined ? group.head : before.next
    if (entry.prev === undefined) group.head = entry
    else entry.prev.next = entry
    if (entry.next === undefined) group.tail = entry
    else entry.next.prev = entry
    group.size += 1
  }

  const unlink = (entry: Entry): void => {
    const group = groups.get(entry.group)
    if (group === undefined) return
    if (entry.prev === undefined) group.head = entry.next
    else entry.prev.next = entry.next
    if (entry.next === undefined) group.tail = entry.prev
    else entry.next.prev = entry.prev
    group.size -= 1
    if (group.size === 0) groups.delete(entry.group)
  }

  const count = (job: Job, by: number): void => {
    const key = modelKey(job.models[0] ?? job.asked)
    const now = (perModel.get(key) ?? 0) + by
    if (now === 0) perModel.delete(key)
    else perModel.set(key, now)
  }

  const sorted = (of: Entry[]): Entry[] => of.sort(comparePlaces)

  return {
    add: (asker, standing, reason, tentative) => {
      const { job, attempt, excluded, unreached } = asker
      if (entries.has(job.id)) throw new Error(`${job.id} waits already`)
      const entry: Entry = {
        job,
        attempt,
        excluded,
        ...(unreached === undefined ? {} : { unreached }),
        standing,
        reason,
        rank: rankOf(job),
        group: groupOf(asker),
        prev: undefined,
        next: undefined,
        ...(tentative === undefined ? {} : { tentative }),
      }
      entries.set(job.id, entry)
      insert(entry)
      count(job, 1)
      if (standing === 'held') held += 1
      return entry
    },
    remove: (request) => {
      const entry = entries.get(request)
      if (entry === undefined) return undefined
      entries.delete(request)
      unlink(entry)
      left = entry
      count(entry.job, -1)
      if (entry.standing === 'held') held -= 1
      return entry
    },
    get: (request) => entries.get(request),
    hasElder: (asker) => {
      if (entries.size === 0) return false
      const { job } = asker
      const head = groups.get(groupOf(asker))?.head
      return head !== undefined && comparePlaces(head, { rank: rankOf(job), job }) <= 0
    },
    goesBefore: (job, entry) => isBefore({ rank: rankOf(job), job }, entry),
    heads: () => sorted([...groups.values()].flatMap((group) => (group.head === undefined ? [] : [group.head]))),
    held: () => (held === 0 ? [] : sorted([...entries.values()].filter((entry) => entry.standing === 'held'))),
    entries: () => sorted([...entries.values()]),
    get size() {
      return entries.size
    },
    get heldCount() {
      return held
    },
    sizeOf: (model) => perModel.get(modelKey(model)) ?? 0,
    setStanding: (entry, standing, reason, tentative) => {
      if (entry.standing !== standing) held += standing === 'held' ? 1 : -1
      entry.standing = standing
      entry.reason = reason
      if (tentative === undefined) delete entry.tentative
      else entry.tentative = tentative
    },
    reorder: () => {
      const moved = [...entries.values()].filter((entry) => entry.rank !== rankOf(entry.job))
      for (const entry of moved) unlink(entry)
      for (const entry of moved) {
        entry.rank = rankOf(entry.job)
        insert(entry)
      }
    },
    ahead: (job) => {
      const key = modelKey(job.models[0] ?? job.asked)
      const rank = rankOf(job)
      let count = 0
      for (const entry of entries.values()) {
        if (entry.job.id === job.id || modelKey(entry.job.models[0] ?? entry.job.asked) !== key) continue
        if (entry.rank < rank || (entry.rank === rank && entry.job.arrivedAt <= job.arrivedAt)) count += 1
      }
      return count
    },
  }
}
