import { type Job, modelKey } from '../../src/domain/job'
import { isMediaLane, laneOf } from '../../src/domain/lanes'
import type { Candidate } from '../../src/domain/placement'
import { axesOf, residentOn } from '../view'
import type { DispatcherContext } from './context'

/** A model that was asked for in the last so many ms will be asked for again. */
const RECENT_MS = 600_000

const isElsewhere = ({ roster }: DispatcherContext, node: string, key: string): boolean =>
  [...roster.holding(key)].some((name) => {
    const member = name === node ? undefined : roster.get(name)
    return (
      member !== undefined &&
      axesOf(member).health === 'online' &&
      residentOn(member).some((model) => modelKey(model.name) === key && model.state === 'ready')
    )
  })

/** The only copy in any node's memory of a model that was just in use. */
const isLastHot = (context: DispatcherContext, node: string, model: string): boolean => {
  const key = modelKey(model)
  const used = context.ledger.lastUsedAt(key)
  return used !== undefined && context.now() - used < RECENT_MS && !isElsewhere(context, node, key)
}

/**
 * What must stay in memory whatever a request for pictures or sound would push out: one of these would stop all of a
 * model's clients for minutes. Text pushes out text as ever.
 */
export const withGuard = (
  context: DispatcherContext,
  job: Job,
  candidates: readonly Candidate[],
): readonly Candidate[] => {
  if (!isMediaLane(laneOf(job.needs))) return candidates
  return candidates.map((candidate) => {
    const { node, others } = candidate
    const keeps = others.map(({ name }) => name).filter((name) => isLastHot(context, node.name, name))
    if (keeps.length === 0) return candidate
    const isKept = ({ name }: { readonly name: string }): boolean => keeps.includes(name)
    return { ...candidate, keeps, others: [...others.filter((one) => !isKept(one)), ...others.filter(isKept)] }
  })
}
