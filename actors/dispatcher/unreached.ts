import type { Candidate, Unreached } from '../../src/domain/placement'
import type { Roster } from '../roster'

const isBack = (roster: Roster, { node, since }: Unreached): boolean => {
  const { lastReportAt, pollMs = 0 } = roster.get(node) ?? {}
  return lastReportAt !== undefined && lastReportAt - pollMs >= since
}

/** The candidates as this request may use them: those on nodes that it could not reach, and that are not back yet, are marked. */
export const withUnreached = (
  roster: Roster,
  unreached: readonly Unreached[] | undefined,
  candidates: readonly Candidate[],
): readonly Candidate[] => {
  const away = unreached?.filter((one) => !isBack(roster, one)) ?? []
  if (away.length === 0) return candidates
  return candidates.map((candidate) =>
    away.some(({ node }) => node === candidate.node.name) ? { ...candidate, isUnreached: true } : candidate,
  )
}
