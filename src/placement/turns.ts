/**
 * Several models share one memory, and each is wanted all the time. Whoever waits for a model that is not there would wait
 * for ever for the others to be idle; and if every request had its way in the order of arrival, the machine would do
 * nothing but load. So what is in memory goes first for a while, then it is the other model's turn.
 */
import type { Job } from '../domain/job'
import type { Candidate } from '../domain/placement'
import { evictionsFor, pushesOutKept } from './eviction'
import type { Entry } from './room'
import { loadsByRequest, needsLoad } from './window'

type Window = Pick<Job, 'contextTokens'>

/** The last load on a node: when it ended, in ms since the epoch, and how long it took. */
export interface LastLoad {
  readonly at: number
  readonly tookMs: number
}

/** A node starts nothing for other models until this one has been loaded there. */
export interface NodeTurn {
  readonly node: string
  readonly model: string
  readonly since: number
  /** Who waits for it in the room; absent: those who are bound to the model's queue there. */
  readonly entry?: Entry
}

/** What is known of turns, by node. */
export interface Turns {
  readonly current: Map<string, NodeTurn>
  readonly lastLoads: Map<string, LastLoad>
  /** No turn begins there before, in ms since the epoch: the last one came to nothing. */
  readonly restUntil: Map<string, number>
  /** How many turns in a row came to nothing, since the last load. */
  readonly gaveUp: Map<string, number>
  /** When a queue was first seen to wait for other models, by node and key of the model. */
  readonly blockedSince: Map<string, number>
}

export const noTurns = (): Turns => ({
  current: new Map(),
  lastLoads: new Map(),
  restUntil: new Map(),
  gaveUp: new Map(),
  blockedSince: new Map(),
})

/** So long, in ms, a node may be kept free for a load, then the others go on for as long: an answer may last an hour. */
const TURN_MS = 120_000
/** A turn after one that came to nothing is twice as long, up to so many times: else answers of minutes keep a model out for ever. */
const MOST_DOUBLINGS = 2

/** How long a turn may last, in ms, after so many in a row that came to nothing. */
export const turnLimitMs = (gaveUp: number): number => TURN_MS * 2 ** Math.min(gaveUp, MOST_DOUBLINGS)

/**
 * Whether a load may push out what others still want: it was waited for since `since` (ms since the epoch), and the load
 * before it has paid off, for at least as long as it took. So at most half of the time goes into loading.
 */
export const isDue = (since: number, last: LastLoad | undefined, swapAfterMs: number, now: number): boolean =>
  now - since >= swapAfterMs && (last === undefined || now - last.at >= Math.max(swapAfterMs, last.tookMs))

/** Loading the model there pushes others out, or may: where memory is not known, the engine decides. */
export const pushesOut = (candidate: Candidate, evicts: readonly string[], now: number): boolean => {
  const { others, availableGb, costGb } = candidate
  if (evicts.length > 0) return true
  const isUnknown = availableGb === undefined || costGb === undefined
  return others.length > 0 && (isUnknown || loadsByRequest(candidate, now))
}

const idle = (candidate: Candidate): Candidate => ({
  ...candidate,
  inFlight: 0,
  others: candidate.others.map((other) => ({ ...other, busy: false })),
})

/** Its memory is only in use for now: by what answers there, or by another load. */
export const isOnlyInUse = (candidate: Candidate, job: Window, now: number): boolean => {
  const { loading, model, totalGb = Number.POSITIVE_INFINITY, costGb = 0 } = candidate
  if (loading !== undefined) return loading !== model && totalGb >= costGb
  return waitsForOthers(candidate, job, now)
}

/** It may be loaded there, once everything is idle. */
const fitsWhenIdle = (candidate: Candidate): boolean =>
  evictionsFor(candidate) !== undefined && !pushesOutKept(candidate)

/** The model could be loaded there, if only what is in memory were not answering. */
export const waitsForOthers = (candidate: Candidate, job: Window, now: number): boolean => {
  const { loading, inFlight, resident, others } = candidate
  if (loading !== undefined) return false
  const isBusy = others.some(({ busy }) => busy) || (resident !== undefined && inFlight > 0)
  if (!isBusy) return false
  return loadsByRequest(candidate, now) || (needsLoad(candidate, job, now) && fitsWhenIdle(idle(candidate)))
}
