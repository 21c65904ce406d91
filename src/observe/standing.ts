import type { Ranked } from '../domain/placement'
import { numberText } from './ranking'
import { counted, enumerate } from './words'

const modelWord = (own: Ranked, other: Ranked): string => (own.model === other.model ? 'it' : own.model)

/** What is held against a node whatever it has in memory; in a rank it is what is added to the whole number of its tier. */
const doubtOf = ({ rank, terms }: Ranked): string => {
  if (terms.health === 'suspect') return ', which is suspect,'
  if (terms.refuses === 'busy') return ', which just refused a request,'
  if (terms.report === 'stale') return ', of which only old news is known,'
  const isHeldBack = typeof rank !== 'number' && !Number.isInteger(rank[0])
  return isHeldBack ? ', whose copy is past its time,' : ''
}

const TIERS: Readonly<Record<string, (model: string, verdict: Ranked) => string>> = {
  resident: (model) => `has ${model} in memory and a free slot`,
  joins_load: (model) => `is loading ${model}`,
  cold: (model) => `has to load ${model}`,
  cold_start: (model) => `has to load ${model}`,
  busy: (model) => `has no free slot for ${model}`,
  evicting: (model, { terms }) =>
    `has to push out ${counted(Number(terms.evicts ?? 1), 'idle model')} to load ${model}`,
  blocked: (model) => `cannot load ${model} now`,
  passed_over: (model) => `has only ${model}, and an earlier model of the chain can be had`,
}

const tierWords = (verdict: Ranked, model: string): string =>
  TIERS[String(verdict.terms.tier)]?.(model, verdict) ?? `is further from running ${model}`

const requests = (count: number): string => (count === 0 ? 'no request' : counted(count, 'request'))

/** What each number of an ordered rank says of its node, from the left. */
const PLACES: readonly ((value: number, model: string, verdict: Ranked) => string)[] = [
  (_, model, verdict) => tierWords(verdict, model),
  (choice, model) => `has ${model}, number ${choice + 1} of the chain`,
  (count, model) => `has ${requests(count)} for ${model}`,
  (count) => `has ${requests(count)}`,
  (count) => `has to push out ${counted(count, 'model')}`,
  (distance) => `is at distance ${numberText(distance)}`,
]

/** What a total is called where it is one. */
const TOTALS: Readonly<Record<string, (total: string) => string>> = {
  warmth: (total) => `scores ${total}`,
  steady: (total) => `costs ${total}`,
  'least-connections': (total) => `has ${requests(Number(total))}`,
  'power-of-two': (total) => `has ${requests(Number(total))}`,
  random: (total) => `drew ${total}`,
}

/** By how much the terms of two totals differ, the largest difference first. */
const termsBetween = (other: Ranked, chosen: Ranked): string => {
  const names = [...new Set([...Object.keys(chosen.terms), ...Object.keys(other.terms)])]
  const differences = names
    .map((name) => ({ name, by: Number(other.terms[name] ?? 0) - Number(chosen.terms[name] ?? 0) }))
    .filter(({ by }) => by !== 0 && !Number.isNaN(by))
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by))
  const said = differences.map(
    ({ name, by }) => `${numberText(Math.abs(by))} ${by > 0 ? 'more' : 'less'} for ${name.replaceAll('_', ' ')}`,
  )
  return said.length > 1 ? `: ${enumerate(said)}` : ''
}

/**
 * What put a node behind the chosen one, in words: the first number in which their ranks differ, or their totals with the
 * terms. Undefined when they are equal.
 */
export const standing = (other: Ranked, chosen: Ranked, policy: string): string | undefined => {
  if (typeof other.rank === 'number' || typeof chosen.rank === 'number') {
    if (other.rank === chosen.rank) return undefined
    if (policy === 'round-robin') return `${other.node} was chosen more recently than ${chosen.node}`
    const say = TOTALS[policy] ?? ((total: string) => `ranks ${total}`)
    const [ours, theirs] = [Number(other.rank), Number(chosen.rank)].map((total) => say(numberText(total)))
    return `${other.node} ${ours}, ${chosen.node} ${theirs}${termsBetween(other, chosen)}`
  }
  const [ours, theirs] = [other.rank, chosen.rank]
  const place = ours.findIndex((value, index) => value !== theirs[index])
  const say = PLACES[place]
  if (!say) return undefined
  const nameOf = (verdict: Ranked): string => verdict.node + (place === 0 ? doubtOf(verdict) : '')
  const mine = say(ours[place] ?? 0, other.model, other)
  const its = say(theirs[place] ?? 0, modelWord(chosen, other), chosen)
  return `${nameOf(other)} ${mine}, ${nameOf(chosen)} ${its}`
}
