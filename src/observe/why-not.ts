import type { Eliminated, Ranked } from '../domain/placement'
import type { DecisionRecord, Round } from '../domain/record'
import { decidingRound } from './because'
import { isChosen, isRanked } from './ranking'
import { standing } from './standing'
import { predicate } from './words'

/** One term of a policy on both sides. `difference` is other minus chosen, where both are numbers. */
export interface Difference {
  readonly term: string
  readonly chosen: number | string
  readonly other: number | string
  readonly difference?: number
}

/** Why a request did not go to one node: the numbers that the decision compared, and a sentence. */
export type WhyNot =
  | { readonly kind: 'chosen'; readonly node: string; readonly sentence: string }
  | (Eliminated & { readonly kind: 'eliminated'; readonly sentence: string })
  | {
      readonly kind: 'ranked'
      readonly node: string
      readonly differences: readonly Difference[]
      readonly sentence: string
    }
  | { readonly kind: 'unknown'; readonly node: string; readonly sentence: string }

/** Compares a node with the chosen one in the round that decided, or says why it was eliminated there. */
export const whyNot = (record: DecisionRecord, node: string): WhyNot => {
  const round = decidingRound(record)
  if (!round) return { kind: 'unknown', node, sentence: 'the request was never placed' }
  const chosen = round.nodes.filter(isRanked).find((verdict) => isChosen(verdict, round.decision))
  if (chosen?.node === node) return { kind: 'chosen', node, sentence: `it did go to ${node}` }
  // A node may stand there once per model of the chain: where it was ranked says more than where it fell.
  const verdicts = round.nodes.filter((verdict) => verdict.node === node)
  const verdict = verdicts.find(isRanked) ?? verdicts[0]
  if (!verdict) return { kind: 'unknown', node, sentence: notThere(round, node) }
  return verdict.verdict === 'eliminated' ? fellOut(verdict) : cameBehind(verdict, chosen, round.policy)
}

const notThere = ({ more }: Round, node: string): string =>
  more
    ? `${node} is not among the best candidates that the record keeps`
    : `${node} was not considered: it does not list the model`

const fellOut = (eliminated: Eliminated): WhyNot => ({
  ...eliminated,
  kind: 'eliminated',
  sentence: `${eliminated.node} ${predicate(eliminated)}`,
})

const cameBehind = (other: Ranked, chosen: Ranked | undefined, policy: string): WhyNot => {
  const { node } = other
  if (!chosen) return { kind: 'ranked', node, differences: [], sentence: `${node} could serve it, but none was free` }
  const equal = `${node} is equal to ${chosen.node}, and of equals the one goes first that was chosen longest ago`
  const sentence = standing(other, chosen, policy) ?? equal
  return { kind: 'ranked', node, differences: differencesOf(chosen, other), sentence }
}

const differencesOf = (chosen: Ranked, other: Ranked): readonly Difference[] => {
  const terms = new Set([...Object.keys(chosen.terms), ...Object.keys(other.terms)])
  return [...terms].flatMap((term) => {
    const theirs = chosen.terms[term] ?? 0
    const ours = other.terms[term] ?? 0
    if (theirs === ours) return []
    const difference = typeof theirs === 'number' && typeof ours === 'number' ? ours - theirs : undefined
    return [{ term, chosen: theirs, other: ours, ...(difference !== undefined && { difference }) }]
  })
}
