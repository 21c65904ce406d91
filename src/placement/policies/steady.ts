import type { Job } from '../../domain/job'
import type { Candidate } from '../../domain/placement'
import type { CostConfig } from '../../domain/score'
import { isServable } from '../window'
import { bindBest, ofChosenModel } from './early'
import type { Policy, PolicyContext } from './policy'

/** A job of so many tokens, prompt and answer together, costs 1. */
const FULL_JOB_TOKENS = 4_096
/** Assumed where the client sets no limit. */
const EXPECTED_OUTPUT_TOKENS = 256

const isFull = ({ free }: Candidate): boolean => free <= 0

/** Those that hold the model come first; a cold one only when all of these are full. */
const eligible = (candidates: readonly Candidate[], job: Job, now: number, spill: boolean): readonly Candidate[] => {
  const resident = candidates.filter((candidate) => isServable(candidate, job, now))
  return resident.length === 0 || (spill && resident.every(isFull)) ? candidates : resident
}

const shareOf = (value: number | undefined, largest: number): number =>
  value === undefined || largest <= 0 ? 0 : value / largest

const largestOf = (values: readonly (number | undefined)[]): number => Math.max(0, ...values.map((value) => value ?? 0))

/** What each weight multiplies, all between 0 and 1 but the two counts and the distance. */
const factors = (
  candidate: Candidate,
  job: Job,
  context: PolicyContext,
  latencyMax: number,
  throughputMax: number,
): Record<keyof Omit<CostConfig, 'spill'>, number> => {
  const { node, inFlight, foreign, bound, slots, resident, gpuUtil } = candidate
  const means = context.nodeMeans(node.name)
  const running = inFlight + foreign
  const tokens = job.promptTokens.value + (job.maxOutputTokens ?? EXPECTED_OUTPUT_TOKENS)
  return {
    active: running,
    queued: bound,
    latency: shareOf(means?.latencyMs, latencyMax),
    jobCost: Math.min(1, tokens / FULL_JOB_TOKENS),
    throughput: shareOf(means?.tokensPerSecond, throughputMax),
    distance: node.distance,
    kvPressure: resident?.kvUsage ?? Math.min(1, slots > 0 ? running / slots : 0),
    gpuUtil: gpuUtil ?? (running > 0 ? 1 : 0),
  }
}

const NAMES: Readonly<Record<keyof Omit<CostConfig, 'spill'>, string>> = {
  active: 'active',
  queued: 'queued',
  latency: 'latency',
  jobCost: 'job_cost',
  throughput: 'throughput',
  distance: 'distance',
  kvPressure: 'kv_pressure',
  gpuUtil: 'gpu_util',
}

/** The llm-router seed's policy: a weighted cost, the lowest total wins. Early: the request joins the winner's queue. */
export const steady: Policy = {
  name: 'steady',
  binding: 'early',
  choose: (survivors, job, context) => {
    const { cost, now } = context
    const candidates = eligible(ofChosenModel(survivors, job, now), job, now, cost.spill)
    const means = candidates.map(({ node }) => context.nodeMeans(node.name))
    const latencyMax = largestOf(means.map((mean) => mean?.latencyMs))
    const throughputMax = largestOf(means.map((mean) => mean?.tokensPerSecond))
    const rated = candidates.map((candidate) => {
      const of = factors(candidate, job, context, latencyMax, throughputMax)
      const terms: Record<string, number> = {}
      let total = 0
      for (const key of Object.keys(NAMES) as (keyof typeof NAMES)[]) {
        const term = cost[key] * of[key]
        terms[NAMES[key]] = term
        total += term
      }
      return { candidate, value: total, terms }
    })
    return bindBest(rated, job, now, (a, b) => a - b)
  },
}
