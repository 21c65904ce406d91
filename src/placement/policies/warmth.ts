import { signals } from '../signals'
import { bindBest, ofChosenModel } from './early'
import type { Policy } from './policy'

/** The routing-engine seed's policy: eight signals, the highest total wins. Early: the request joins the winner's queue. */
export const warmth: Policy = {
  name: 'warmth',
  binding: 'early',
  choose: (survivors, job, context) => {
    const rated = ofChosenModel(survivors, job, context.now).map((candidate) => {
      const terms: Record<string, number> = {}
      let total = 0
      for (const { name, score } of signals) {
        const points = score(candidate, job, context, context.score)
        terms[name] = points
        total += points
      }
      return { candidate, value: total, terms }
    })
    return bindBest(rated, job, context.now, (a, b) => b - a)
  },
}
