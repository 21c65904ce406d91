import type { Job } from '../../src/domain/job'
import type { Candidate, Placement } from '../../src/domain/placement'
import { isDoubtful, trialFor } from '../../src/placement/trial'
import type { DispatcherContext } from './context'

type Desk = Pick<DispatcherContext, 'ledger' | 'samples' | 'now'>

const mayTry = ({ samples }: Pick<Desk, 'samples'>, { node, model }: Candidate): boolean =>
  samples.parallelism.of(node.name, model)?.mayTry === true

/** A request that would wait may be the one that shows whether an engine runs more at once than is known. */
export const orTrial = (desk: Desk, job: Job, candidates: readonly Candidate[], placement: Placement): Placement => {
  const trial = trialFor(placement, candidates, job, desk.now(), (candidate) => mayTry(desk, candidate))
  const { node, model } = trial?.decision ?? {}
  if (trial === undefined || node === undefined || model === undefined) return placement
  desk.samples.parallelism.trying(node, model, job.id)
  return trial
}

/** The same for one that is bound to the candidate's queue: all slots are taken, and one more is to be tried. */
export const isTrial = (desk: Desk, candidate: Candidate): boolean =>
  isDoubtful(candidate) &&
  desk.ledger.account(candidate.node.name, candidate.model).granted === 0 &&
  mayTry(desk, candidate)
