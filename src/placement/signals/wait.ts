import type { Candidate } from '../../domain/placement'
import { depthOf } from './queue-depth'
import type { Signal } from './signal'

/** The length of the job that the guess is made for, in tokens. */
const GUESSED_TOKENS = 100

/**
 * Before anything was measured, from memory bandwidth and model size (five-stage pipeline, 5.4):
 * tokens/s = max(10, bandwidth x 1.2 / max(1, GB / 10)), or max(1, 100 / max(1, GB)) where bandwidth is unknown.
 */
export const guessedServiceMs = ({ node, costGb, stored }: Candidate): number => {
  const sizeGb = costGb ?? stored.sizeGb ?? 10
  const bandwidth = node.bandwidthGBps
  const tokensPerSecond =
    bandwidth === undefined
      ? Math.max(1, 100 / Math.max(1, sizeGb))
      : Math.max(10, (bandwidth * 1.2) / Math.max(1, sizeGb / 10))
  return (GUESSED_TOKENS * 1000) / tokensPerSecond
}

/** 0 to -25: a point for every 10 s that the requests before it take, each at the pair's p75. */
export const wait: Signal = {
  name: 'wait',
  score(candidate, _job, { p75Ms }, { wait: { max } }) {
    const depth = depthOf(candidate)
    if (depth === 0) return 0
    const seconds = (depth * (p75Ms(candidate) ?? guessedServiceMs(candidate))) / 1000
    return -Math.min(max, seconds / 10)
  },
}
