import type { Candidate } from '../../domain/placement'
import type { Signal } from './signal'

/** Requests that run or wait for this model on this node, foreign ones too. */
export const depthOf = ({ inFlight, bound, foreign }: Candidate): number => inFlight + bound + foreign

/** 0 to -30: six points for each request that runs or waits there. */
export const queueDepth: Signal = {
  name: 'queue_depth',
  score: (candidate, _job, _context, { queueDepth: { perRequest, max } }) =>
    -Math.min(max, depthOf(candidate) * perRequest),
}
