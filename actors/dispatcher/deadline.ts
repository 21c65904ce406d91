import { RouterError } from '../../src/domain/errors'
import type { Estimate } from '../../src/domain/facts'
import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate, Placement } from '../../src/domain/placement'
import { forecast, type SlotForecast, withQueued } from '../../src/placement/estimate'
import { loadsByRequest, needsLoad } from '../../src/placement/window'
import type { DispatcherContext } from './context'
import { inTheWay, runningOf } from './refusals'

/** Fewer answers than these say too little about a node and a model to refuse anybody. */
const MIN_SAMPLES = 3
/** A request past its usual time is expected to need at least this share of it more. */
const FLOOR_SHARE = 0.1

/** ms until the model is there: 0 where it is, undefined where nobody knows how long it takes. */
const loadMs = ({ samples, ledger, now }: DispatcherContext, candidate: Candidate, job: Job): number | undefined => {
  const { node, model, costGb, loading } = candidate
  if (!needsLoad(candidate, job, now()) && !loadsByRequest(candidate, now())) return 0
  const usual = samples.loadMs(node.name, modelKey(model), costGb)?.meanMs
  if (usual === undefined || loading !== model) return usual
  return Math.max(usual - (now() - (ledger.loading(node.name)?.startedAt ?? now())), usual * FLOOR_SHARE)
}

/** The candidate's slots as they should come free, or undefined when too little was measured there. */
const slotsOf = (context: DispatcherContext, candidate: Candidate, job: Job) => {
  const { samples, ledger } = context
  const { node, model, bound, foreign, free } = candidate
  const measured = samples.service(node.name, modelKey(model))
  const toLoad = loadMs(context, candidate, job)
  if (measured === undefined || measured.samples < MIN_SAMPLES || toLoad === undefined) return undefined
  const { meanMs } = measured
  const usual = samples.p75(node.name, modelKey(model)) ?? meanMs
  const running = (free > 0 ? ledger.on(node.name, model) : inTheWay(context, candidate)).map((one) => {
    const { elapsedMs, meanMs: mean = usual } = runningOf(context, one)
    const expected = modelKey(one.model) === modelKey(model) ? usual : mean
    return Math.max(expected - elapsedMs, expected * FLOOR_SHARE)
  })
  const busy = [...running, ...Array.from({ length: foreign }, () => usual)].sort((a, b) => a - b)
  const count = Math.max(1, free > 0 ? candidate.slots : Math.min(candidate.slots, busy.length))
  const slots: SlotForecast[] = []
  for (let at = 0; at < count; at++) {
    // Those that end first; a slot beyond them is free.
    slots.push({ freeInMs: (busy[at] ?? 0) + toLoad, serviceMs: meanMs })
  }
  return { slots: withQueued(slots, bound), samples: measured.samples }
}

/**
 * When the answer to a job should be complete, from now on, by what runs and by what answers took on every node that could
 * take it; undefined as long as one of them was not measured, for that one may be faster. `waitMs` and `serviceMs` are its
 * two parts.
 */
export const estimateFor = (
  context: DispatcherContext,
  job: Job,
  candidates: readonly Candidate[],
  { verdicts }: Placement,
): (Estimate & { readonly waitMs: number; readonly serviceMs: number }) | undefined => {
  const able = candidates.filter((one) =>
    verdicts.some(({ verdict, node, model }) => verdict === 'ranked' && node === one.node.name && model === one.model),
  )
  const all: SlotForecast[] = []
  let samples = Number.POSITIVE_INFINITY
  for (const candidate of able) {
    const known = slotsOf(context, candidate, job)
    if (known === undefined) return undefined
    all.push(...known.slots)
    samples = Math.min(samples, known.samples)
  }
  const expected = forecast(all, context.room.ahead(job))
  if (expected === undefined) return undefined
  const { waitMs, serviceMs } = expected
  return { valueMs: Math.round(waitMs + serviceMs), basis: 'measured', samples, waitMs, serviceMs }
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`

/** The error for a job that cannot be answered in time, or undefined when it can or nobody knows. */
export const deadlineRefusal = (
  { now }: DispatcherContext,
  { deadlineAt }: Job,
  estimate: ReturnType<typeof estimateFor>,
): RouterError | undefined => {
  if (deadlineAt === undefined || estimate === undefined) return undefined
  const leftMs = deadlineAt - now()
  if (estimate.valueMs <= leftMs) return undefined
  const { valueMs, waitMs, serviceMs, samples } = estimate
  return new RouterError(
    'deadline_exceeded',
    `The answer would take about ${seconds(valueMs)} (${seconds(waitMs)} until a slot is free, ${seconds(serviceMs)} to answer; measured over ${samples} answers), and ${seconds(Math.max(0, leftMs))} are left.`,
    { hint: 'Give it a later X-Fleet-Deadline, or none to let it wait.' },
  )
}
