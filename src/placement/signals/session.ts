import { depthOf } from './queue-depth'
import type { Signal } from './signal'

/** 0 to +20 on the node that served the session last, less the more runs or waits there: 20 / (1 + depth / 2). */
export const session: Signal = {
  name: 'session',
  score: (candidate, job, { sessionNode }, { session: { max } }) =>
    sessionNode(job) === candidate.node.name ? max / (1 + depthOf(candidate) / 2) : 0,
}
