import { type Job, modelKey } from '../src/domain/job'
import type { NodeReport } from '../src/domain/node'
import type { Candidate } from '../src/domain/placement'
import type { Ledger } from '../src/placement/ledger'
import type { Member, Roster } from './roster'
import { candidateOf, isStale, type LearnedSlots } from './view'

interface Sources {
  readonly ledger: Ledger
  readonly roster: Roster
  readonly parallelism: LearnedSlots
}

/** A candidate, and everything that it was made from. */
interface Row {
  readonly member: Member
  readonly mark: { readonly version: number }
  readonly learned: { readonly version: number }
  report: NodeReport | undefined
  node: unknown
  runtime: unknown
  isStale: boolean
  version: number
  learnedVersion: number
  candidate: Candidate | undefined
}

/** The rows of one model in one place of a chain, in the order of the roster. */
interface Slate {
  readonly rows: Row[]
  /** Of the rows that have one. */
  candidates: Candidate[]
}

interface Slates {
  revision: number
  /** By place in the chain, then by model. */
  readonly byChoice: Map<string, Slate>[]
}

/** One set a ledger: a dispatcher that starts anew begins with none. */
const known = new WeakMap<Ledger, Slates>()

const slatesOf = (ledger: Ledger, { revision }: Roster): Slates => {
  let slates = known.get(ledger)
  if (slates === undefined) {
    slates = { revision, byChoice: [] }
    known.set(ledger, slates)
  }
  if (slates.revision !== revision) {
    slates.revision = revision
    slates.byChoice.length = 0
  }
  return slates
}

/** Snapshots are replaced whole, and ledger and samples count their changes, so being the same ones is being up to date. */
const isFresh = ({
  member,
  report,
  node,
  runtime,
  isStale: wasStale,
  mark,
  version,
  learned,
  learnedVersion,
}: Row): boolean =>
  mark.version === version &&
  learned.version === learnedVersion &&
  member.report === report &&
  member.node.getSnapshot() === node &&
  member.runtime.getSnapshot() === runtime &&
  isStale(member) === wasStale

/** Makes the candidate of the row, from what is now. */
const fill = (row: Row, key: string, choice: number, { ledger, roster, parallelism }: Sources): Row => {
  const { member } = row
  const candidate = candidateOf(member, key, choice, ledger, roster, parallelism)
  // Only once it is made is the row up to date.
  row.candidate = candidate
  row.report = member.report
  row.node = member.node.getSnapshot()
  row.runtime = member.runtime.getSnapshot()
  row.isStale = isStale(member)
  row.version = row.mark.version
  row.learnedVersion = row.learned.version
  return row
}

const rowOf = (member: Member, key: string, choice: number, sources: Sources): Row => {
  const { name } = member.description
  const mark = sources.ledger.mark(name)
  const learned = sources.parallelism.mark(name)
  const empty = { report: undefined, node: undefined, runtime: undefined, isStale: false, candidate: undefined }
  return fill({ member, mark, learned, version: -1, learnedVersion: -1, ...empty }, key, choice, sources)
}

const standing = (rows: readonly Row[]): Candidate[] =>
  rows.flatMap(({ candidate }) => (candidate === undefined ? [] : [candidate]))

const slateFor = (key: string, choice: number, sources: Sources): Slate => {
  const rows: Row[] = []
  for (const name of sources.roster.holding(key)) {
    const member = sources.roster.get(name)
    if (member !== undefined) rows.push(rowOf(member, key, choice, sources))
  }
  return { rows, candidates: standing(rows) }
}

const refresh = (slate: Slate, key: string, choice: number, sources: Sources): void => {
  const { rows, candidates } = slate
  let isComplete = candidates.length === rows.length
  let changed = false
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as Row
    if (isFresh(row)) continue
    const { candidate } = fill(row, key, choice, sources)
    changed = true
    if (candidate === undefined) isComplete = false
    else if (isComplete) candidates[at] = candidate
  }
  if (changed && !isComplete) slate.candidates = standing(rows)
}

const candidatesOf = (name: string, choice: number, { byChoice }: Slates, sources: Sources): readonly Candidate[] => {
  const key = modelKey(name)
  const byModel = byChoice[choice] ?? new Map<string, Slate>()
  byChoice[choice] = byModel
  const slate = byModel.get(key)
  if (slate !== undefined) {
    refresh(slate, key, choice, sources)
    return slate.candidates
  }
  const fresh = slateFor(key, choice, sources)
  if (fresh.rows.length > 0) byModel.set(key, fresh)
  return fresh.candidates
}

/**
 * Live snapshots as plain candidates, for every node that holds a model of the job's chain and for no other. Between two
 * decisions little changes: what still holds is kept, so that a decision among hundreds of nodes looks at each but
 * builds only a few anew. The list is good for the turn; the next one may change it.
 */
export const candidatesFor = (
  job: Job,
  roster: Roster,
  ledger: Ledger,
  parallelism: LearnedSlots,
): readonly Candidate[] => {
  const sources = { roster, ledger, parallelism }
  const slates = slatesOf(ledger, roster)
  const [first] = job.models
  if (job.models.length === 1 && first !== undefined) return candidatesOf(first, 0, slates, sources)
  // Where any model will do, none of them is a second choice.
  return job.models.flatMap((name, choice) => candidatesOf(name, job.anyModel ? 0 : choice, slates, sources))
}

/** The one that a decision names. Without a closure: every placement looks for it. */
export const candidateNamed = (
  candidates: readonly Candidate[],
  node: string | undefined,
  model: string | undefined,
): Candidate | undefined => {
  for (const candidate of candidates) if (candidate.node.name === node && candidate.model === model) return candidate
  return undefined
}
