import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate } from '../../src/domain/placement'
import { batchRoom, classAt } from '../../src/placement/priority'
import type { DispatcherContext } from './context'

type Desk = Pick<DispatcherContext, 'ledger' | 'config' | 'now' | 'boundBatch'>

/** It is batch work now; what has waited for long enough is not any more. */
export const isBatch = (
  { config, now }: Pick<Desk, 'config' | 'now'>,
  job: Pick<Job, 'priority' | 'arrivedAt'>,
): boolean => job.priority === 'batch' && classAt(job, now(), config.priorities) === 'batch'

/** Slots of the candidate's node that batch work may still take; of its model alone where the node has no limit of its own. */
const batchSlotsLeft = ({ ledger, config }: Desk, { node, model, slots, nodeInFlight }: Candidate): number => {
  const held = ledger.on(node.name, node.maxConcurrency === undefined ? model : undefined)
  const batch = held.filter((reservation) => reservation.isBatch).length
  return batchRoom({ slots: node.maxConcurrency ?? slots, batch, nodeInFlight }, config.priorities.batchMaxShare)
}

/** The candidates as this job may use them: batch work sees no more free slots than its share has left. */
export const withShare = (desk: Desk, job: Job, candidates: readonly Candidate[]): readonly Candidate[] =>
  isBatch(desk, job)
    ? candidates.map((candidate) => {
        const shareLeft = batchSlotsLeft(desk, candidate)
        return { ...candidate, free: Math.min(candidate.free, shareLeft), shareLeft }
      })
    : candidates

/** How many that are bound there could begin now, and whether batch work is among them. */
export const startable = (desk: Desk, candidate: Candidate): { readonly count: number; readonly batch: boolean } => {
  const { node, model } = candidate
  const { bound, granted } = desk.ledger.account(node.name, model)
  const key = modelKey(model)
  let batch = 0
  for (const one of desk.boundBatch.values()) {
    if (one.node === node.name && modelKey(one.model) === key && isBatch(desk, one)) batch += 1
  }
  const mayBatch = batch === 0 || batchSlotsLeft(desk, candidate) > granted
  return { count: mayBatch ? bound : bound - batch, batch: mayBatch }
}
