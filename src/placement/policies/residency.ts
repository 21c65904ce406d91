import type { Job } from '../../domain/job'
import type { Candidate, Decision, Ranked } from '../../domain/placement'
import { selectBest } from '../../domain/select-best'
import type { Writable } from '../../domain/writable'
import { evictionsFor, isAtRisk } from '../eviction'
import { isExpired, isIdleForRequest, isServable, loadsByRequest, needsLoad } from '../window'
import type { Choice, Policy, PolicyContext } from './policy'

/** Places in the order, best first; the first term of every rank. */
const TIER = {
  resident: 0,
  joins_load: 1,
  cold: 2,
  cold_start: 2,
  busy: 3,
  evicting: 4,
  blocked: 5,
  passed_over: 10,
} as const
type Tier = keyof typeof TIER

/**
 * A suspect node, one that hangs while it unloads and one that just refused because it is busy stand behind a healthy
 * cold one and before waiting for a healthy busy one.
 */
const SUSPECT_TIERS = 2.5
/** One of which only old news is known stands behind its equals. */
const STALE_TIERS = 0.5

/** Behind all that can take the prompt sooner or later stands a copy whose window the prompt probably exceeds. */
const OVERFULL_TIERS = 6

/** By the estimate. Of embeddings and rankings only each piece has to fit, so their sum tells nothing. */
const isOverfull = ({ resident }: Candidate, { promptTokens, needs }: Job): boolean =>
  resident?.state === 'ready' &&
  resident.contextTokens !== undefined &&
  promptTokens.value > resident.contextTokens &&
  (needs.includes('chat') || needs.includes('completion'))

/** Verdicts in order; more are never shown, so the rest is not sorted. */
const IN_ORDER = 8

interface Entry {
  readonly candidate: Candidate
  readonly tier: Tier
  readonly rank: readonly number[]
  readonly evicts: readonly string[]
  readonly verdict: Ranked
}

const tierOf = (candidate: Candidate, job: Job, now: number): { tier: Tier; evicts: readonly string[] } => {
  const none: readonly string[] = []
  const { free, loading, model } = candidate
  if (loadsByRequest(candidate, now)) return { tier: tierByRequest(candidate), evicts: none }
  if (loading === model && candidate.canLoad) return { tier: free > 0 ? 'joins_load' : 'busy', evicts: none }
  if (!needsLoad(candidate, job, now)) {
    if (isAtRisk(candidate)) return { tier: 'blocked', evicts: none }
    return { tier: free > 0 ? 'resident' : 'busy', evicts: none }
  }
  if (loading !== undefined || free <= 0) return { tier: 'blocked', evicts: none }
  const reloadsBusy = candidate.resident !== undefined && candidate.inFlight > 0
  const evicts = evictionsFor(candidate)
  if (reloadsBusy || evicts === undefined) return { tier: 'blocked', evicts: none }
  return { tier: evicts.length === 0 ? 'cold' : 'evicting', evicts }
}

/** A second request does not join such a load: it belongs to the first one, and may fail with it. */
const tierByRequest = (candidate: Candidate): Tier => {
  const { free, loading, model } = candidate
  if (loading === model) return 'busy'
  return free > 0 && isIdleForRequest(candidate) ? 'cold_start' : 'blocked'
}

const compare = (a: Entry, b: Entry): number => {
  for (let i = 0; i < a.rank.length; i++) {
    const difference = (a.rank[i] ?? 0) - (b.rank[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const entryOf = (candidate: Candidate, job: Job, now: number): Entry => {
  const { tier, evicts } = tierOf(candidate, job, now)
  const isSuspect = candidate.health === 'suspect' || candidate.isRefusing === true || isExpired(candidate, now)
  const isTooLong = isOverfull(candidate, job)
  const doubt = isTooLong ? OVERFULL_TIERS : isSuspect ? SUSPECT_TIERS : candidate.isStale === true ? STALE_TIERS : 0
  const load = candidate.inFlight + candidate.foreign + candidate.bound
  // A resident fallback beats a cold primary; among equals the chain's order, then load, then who was chosen longest ago.
  const rank = [
    TIER[tier] + doubt,
    candidate.choice,
    load,
    candidate.nodeInFlight,
    evicts.length,
    candidate.node.distance,
    candidate.lastChosen,
  ]
  const verdict = verdictOf(candidate, tier, evicts, rank)
  return { candidate, tier, evicts, rank, verdict: isTooLong ? tooLong(verdict, candidate) : verdict }
}

const tooLong = (verdict: Ranked, { resident }: Candidate): Ranked => ({
  ...verdict,
  terms: { ...verdict.terms, window: resident?.contextTokens ?? 0 },
})

/** By candidate: an unchanged one, in an unchanged world, is ranked as at the decision before. */
const remembered = new WeakMap<Candidate, Entry>()

/** A job with a window of its own or too long for this one, and a copy that expires, are looked at each time. */
const rememberedEntry = (candidate: Candidate, job: Job, now: number): Entry => {
  if (job.contextTokens !== undefined || candidate.resident?.expiresAt !== undefined || isOverfull(candidate, job))
    return entryOf(candidate, job, now)
  let entry = remembered.get(candidate)
  if (entry === undefined) {
    entry = entryOf(candidate, job, now)
    remembered.set(candidate, entry)
  }
  return entry
}

/** What the node has to end before it can load another model. */
const busyOn = ({ loading, others, model }: Candidate): string => {
  const names = others.filter(({ busy }) => busy).map(({ name }) => name)
  if (loading !== undefined && loading !== model && !names.includes(loading)) names.push(loading)
  return names.join(' and ')
}

const verdictOf = (candidate: Candidate, tier: Tier, evicts: readonly string[], rank: readonly number[]): Ranked => {
  const terms: Record<string, number | string> = {
    tier,
    in_flight: candidate.inFlight,
    free: candidate.free,
    slots: candidate.slots,
  }
  if (candidate.choice > 0) terms.choice = candidate.choice
  if (candidate.health === 'suspect') terms.health = 'suspect'
  if (candidate.isStale === true) terms.report = 'stale'
  if (candidate.isRefusing === true) terms.refuses = 'busy'
  if (candidate.slotsBasis === 'learned') terms.slots_from = 'learned'
  if (candidate.shareLeft !== undefined) terms.batch_share_left = candidate.shareLeft
  if (candidate.turnOf !== undefined) terms.turn_of = candidate.turnOf
  if (candidate.foreign > 0) terms.foreign = candidate.foreign
  const inTheWay = tier === 'blocked' ? busyOn(candidate) : ''
  if (inTheWay !== '') terms.busy_with = inTheWay
  if (evicts.length > 0) terms.evicts = evicts.length
  if (candidate.availableGb === undefined) terms.memory_fit = 'unknown'
  const { node, model } = candidate
  return { verdict: 'ranked', node: node.name, model, rank: rank.slice(0, -1), terms }
}

/** A model is on its way into memory, or can be brought there at once. */
const LOADABLE: ReadonlySet<Tier> = new Set(['joins_load', 'cold', 'cold_start', 'evicting'])

const isSound = ({ tier, rank: [place = 0] }: Entry): boolean => place - TIER[tier] < SUSPECT_TIERS

const passOver = ({ candidate, evicts, rank: [, ...rest] }: Entry): Entry => {
  const rank = [TIER.passed_over, ...rest]
  return { candidate, evicts, tier: 'passed_over', rank, verdict: verdictOf(candidate, 'passed_over', evicts, rank) }
}

/**
 * The routing-engine seed's fallback chain: whatever is in memory goes before all loading. What may be loaded is the first
 * model that some node has in memory, else the first that some node can load; further ones of the chain are passed over.
 */
const inChain = (entries: readonly Entry[], job: Job, now: number): readonly Entry[] => {
  const isWarm = (entry: Entry): boolean => isServable(entry.candidate, job, now) && isSound(entry)
  const first = (is: (entry: Entry) => boolean): number | undefined =>
    entries
      .filter(is)
      .reduce<number | undefined>((least, { candidate: { choice } }) => Math.min(least ?? choice, choice), undefined)
  const chosen = first(isWarm) ?? first((entry) => LOADABLE.has(entry.tier) && isSound(entry))
  if (chosen === undefined) return entries
  const mayGo = (entry: Entry): boolean =>
    entry.candidate.choice === chosen || entry.tier === 'joins_load' || isWarm(entry)
  return entries.map((entry) => (mayGo(entry) ? entry : passOver(entry)))
}

const decide = (entries: readonly Entry[]): Decision => {
  const [best] = entries
  if (best === undefined) return { kind: 'hold', reason: 'held' }
  const { candidate, tier, evicts } = best
  const { choice, model } = candidate
  const { name: node } = candidate.node
  const answer = (kind: Decision['kind'], reason: Decision['reason']): Writable<Decision> => {
    const decision: Writable<Decision> = { kind, node, model, reason }
    if (choice > 0) decision.choice = choice
    return decision
  }
  switch (tier) {
    case 'resident':
      return answer('start', entries.length === 1 ? 'only_candidate' : choice > 0 ? 'fallback' : 'resident')
    case 'cold_start':
      return answer('start', 'cold_load')
    case 'joins_load':
      return answer('load', 'cold_load')
    case 'cold':
    case 'evicting': {
      const decision = answer('load', 'cold_load')
      decision.evicts = evicts
      return decision
    }
    case 'busy':
    case 'blocked':
    case 'passed_over':
      return answer('wait', 'held')
  }
}

/**
 * The fleet-router seed's policy: resident with a free slot (fewest in flight), else cold with room and a free slot,
 * else wait. Idle models are pushed out only when no node holds the model at all. Late: it answers start, load or wait.
 */
export const residency: Policy = {
  name: 'residency',
  binding: 'late',
  choose: (survivors, job, { now }: PolicyContext): Choice => {
    const all = survivors.map((candidate) => rememberedEntry(candidate, job, now))
    const entries = selectBest(job.models.length > 1 ? inChain(all, job, now) : all, IN_ORDER, compare)
    const [first, second] = entries
    const tied =
      first !== undefined && second !== undefined && first.rank.slice(0, -1).every((term, i) => term === second.rank[i])
    const ranked = entries.map(({ verdict }) => verdict)
    if (tied && ranked[0] !== undefined) ranked[0] = { ...ranked[0], tie: 'least_recently_chosen' }
    return { decision: decide(entries), ranked }
  },
}
