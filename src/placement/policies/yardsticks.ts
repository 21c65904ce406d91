import type { Job } from '../../domain/job'
import type { Candidate } from '../../domain/placement'
import { bindBest, ofChosenModel } from './early'
import type { Policy, PolicyContext } from './policy'

type Rate = (candidate: Candidate, context: PolicyContext) => number

/** A policy that knows nothing of memory or speed: what others do, to measure against. The lowest value wins. */
const yardstick = (
  name: string,
  term: string,
  rate: Rate,
  among: (of: readonly Candidate[], context: PolicyContext) => readonly Candidate[] = (of) => of,
): Policy => ({
  name,
  binding: 'early',
  choose: (survivors: readonly Candidate[], job: Job, context: PolicyContext) => {
    const rated = among(ofChosenModel(survivors, job, context.now), context).map((candidate) => {
      const value = rate(candidate, context)
      return { candidate, value, terms: { [term]: value } }
    })
    return bindBest(rated, job, context.now, (a, b) => a - b)
  },
})

const connections: Rate = ({ nodeInFlight, bound }) => nodeInFlight + bound

const twoOf = (candidates: readonly Candidate[], { random }: PolicyContext): readonly Candidate[] => {
  if (candidates.length <= 2) return candidates
  const first = Math.floor(random() * candidates.length)
  const second = (first + 1 + Math.floor(random() * (candidates.length - 1))) % candidates.length
  return [candidates[first], candidates[second]].filter((candidate) => candidate !== undefined)
}

/** Least recently chosen first. */
export const roundRobin = yardstick('round-robin', 'turn', ({ lastChosen }) => lastChosen)
/** Fewest requests of ours on the node first. */
export const leastConnections = yardstick('least-connections', 'connections', connections)
/** The less loaded of two drawn at random. */
export const powerOfTwo = yardstick('power-of-two', 'connections', connections, twoOf)
export const random = yardstick('random', 'draw', (_candidate, context) => context.random())
