import type { Decision, Rank, Ranked, Verdict } from '../domain/placement'
import { selectBest } from '../domain/select-best'

/** Left to right, lower is better; the shorter one first when one is the other's beginning. */
const compareTerms = (a: Rank, b: Rank): number => {
  const end = Math.min(a.length, b.length)
  for (let i = 0; i < end; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/**
 * Whether the highest total wins in this round. Policies with totals differ in it and the verdicts do not say: the
 * chosen node tells, and without one the highest is taken to be the best.
 */
const highestWins = (ranked: readonly Ranked[], decision: Decision): boolean => {
  const chosen = ranked.find((candidate) => isChosen(candidate, decision))
  const total = typeof chosen?.rank === 'number' ? chosen.rank : undefined
  return total === undefined || ranked.every(({ rank }) => typeof rank !== 'number' || rank <= total)
}

export const isChosen = (verdict: Verdict, decision: Decision): boolean =>
  verdict.node === decision.node && (decision.model === undefined || verdict.model === decision.model)

export const isRanked = (verdict: Verdict): verdict is Ranked => verdict.verdict === 'ranked'

/** The ranked candidates of a round, the first `count` of them best first, the chosen one before its equals. */
export const bestFirst = (
  verdicts: readonly Verdict[],
  decision: Decision,
  count = Number.POSITIVE_INFINITY,
): Ranked[] => {
  const ranked = verdicts.filter(isRanked)
  if (ranked.length < 2) return ranked
  const sign = highestWins(ranked, decision) ? -1 : 1
  const compare = (a: Ranked, b: Ranked): number => {
    const byRank =
      typeof a.rank === 'number' || typeof b.rank === 'number'
        ? sign * (Number(a.rank) - Number(b.rank))
        : compareTerms(a.rank, b.rank)
    return byRank || Number(isChosen(b, decision)) - Number(isChosen(a, decision))
  }
  return selectBest(ranked, count, compare)
}

/** A rank as people see it: a total, or the ordered terms joined by `/`. */
export const rankText = (rank: number | Rank): string => {
  if (typeof rank === 'number') return numberText(rank)
  let text = ''
  for (const term of rank) text = text === '' ? numberText(term) : `${text}/${numberText(term)}`
  return text
}

/** At most two decimals, none when there are none. */
export const numberText = (value: number): string => String(Math.round(value * 100) / 100)
