import type { Eliminated } from '../domain/placement'

/** `18.6 GB`, `8 190 tokens`, `3`: one decimal for GB, whole numbers in groups of three else. */
export const quantity = (value: number, unit?: string): string => {
  const number = unit === 'GB' ? String(Math.round(value * 10) / 10) : grouped(Math.round(value))
  return unit ? `${number} ${unit}` : number
}

/** `needs 18.6 GB, has 7.2 GB`; empty when the elimination compared no numbers. */
export const needHave = ({ need, have, unit }: Pick<Eliminated, 'need' | 'have' | 'unit'>): string => {
  const needs = need === undefined ? '' : `needs ${quantity(need, unit)}`
  const has = have === undefined ? '' : `has ${quantity(have, unit)}`
  return needs && has ? `${needs}, ${has}` : needs || has
}

const PREDICATES: Readonly<Record<string, string>> = {
  offline: 'is offline',
  paused: 'is paused or draining',
  breaker_open: 'failed too often and is left alone for now',
  not_inventoried: 'has not told its models yet',
  queue_full: 'has a full queue',
  not_listed: 'may not serve the model',
  pinned_elsewhere: 'is not the node that was asked for',
  failed_before: 'already failed this request',
  unreachable: 'could not be reached or was still starting, and has not answered a poll since',
  lane_missing: 'is of a kind, or has the model for a kind, that does not do this',
  lane_down: 'cannot do this now, though it does other work',
  last_hot_copy: 'would have to push out the only copy of a model that was just in use',
  capability_missing: 'has the model without what the request needs',
  other_kind: 'has a stand-in that can do less than the model that was asked for',
  role: 'is configured for other work',
  pressure_critical: 'is short of memory',
}

/** `needs 18.6 GB, has 7.2 GB`, `is offline`: what to put after the node's name. */
export const predicate = (eliminated: Eliminated): string =>
  needHave(eliminated) || (PREDICATES[eliminated.reason] ?? `was eliminated: ${eliminated.reason}`)

/** A time for people: `40 ms`, `9.8 s`, `31 s`, `3 min 20 s`. */
export const duration = (ms: number): string => {
  if (ms < 100) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  const rest = seconds % 60
  return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`
}

/** `1 node`, `3 nodes`. */
export const counted = (count: number, noun: string): string => `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`

/** `a`, `a and b`, `a, b and c`. */
export const enumerate = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`

const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ' ')
