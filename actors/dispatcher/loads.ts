import type { Failure } from '../../src/domain/facts'
import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate } from '../../src/domain/placement'
import { windowToLoad } from '../../src/placement/window'
import { address } from '../protocol'
import { candidateAt } from '../view'
import type { Turn } from './context'
import { isBatch } from './share'
import { noteLoaded } from './turns'

/** A load may take this many times what it took before. */
const LOAD_PATIENCE = 3
/** What the slowest disk still reads, in GB/s: where nothing was measured yet, the size decides by it. */
const SLOWEST_GB_PER_S = 0.03
/** However large and slow, no load takes longer than this, in ms; a longer configured least counts. */
const LOAD_DEADLINE_MAX_MS = 2 * 3_600_000

/**
 * Deadline of a load in ms: the configured least, longer where this node's measured load times or rate say so, and
 * before the first measurement where the size does.
 */
export const loadDeadlineMs = ({ context }: Turn, { node, model, costGb }: Candidate): number => {
  const measured = context.samples.loadMs(node.name, modelKey(model), costGb)?.meanMs
  const patience = measured === undefined ? ((costGb ?? 0) / SLOWEST_GB_PER_S) * 1_000 : measured * LOAD_PATIENCE
  return Math.max(context.config.limits.loadTimeoutMinMs, Math.min(LOAD_DEADLINE_MAX_MS, patience))
}

/**
 * Keeps a slot for the job and sees that its model is being loaded there. One load at a time per node; whoever comes
 * later joins it. The load belongs to the node's runtime, so it outlives a client that leaves.
 */
export const beginLoad = (
  turn: Turn,
  job: Job,
  attempt: number,
  candidate: Candidate,
  evicts: readonly string[],
): void => {
  const { context, api } = turn
  const { ledger } = context
  const node = candidate.node.name
  const { model } = candidate
  const now = context.now()
  const batch = isBatch(context, job) ? { isBatch: true as const } : {}
  ledger.reserve({ request: job.id, attempt, node, model, state: 'loading', since: now, ...batch })
  ledger.chosen(node)
  context.loading.set(job.id, job)
  api.send(address.request(job.id), { type: 'placement.loading', node, model })
  const current = ledger.loading(node)
  if (current !== undefined && current.request === undefined) return
  const contextTokens = windowToLoad(candidate.node, job)
  ledger.beginLoad({
    node,
    model,
    startedAt: now,
    evicts,
    ...(candidate.costGb === undefined ? {} : { costGb: candidate.costGb }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  })
  context.journal.record({ type: 'load.started', at: now, node, model, cause: 'request', evicts })
  api.send(address.runtime(node), {
    type: 'model.load',
    model,
    evicts,
    cause: 'request',
    deadlineMs: loadDeadlineMs(turn, candidate),
    ...(candidate.costGb === undefined ? {} : { sizeGb: candidate.costGb }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  })
}

/**
 * Where only a request makes the engine load, that request stands for the load until a report shows the model in memory.
 * Returns how long the load may take, in ms.
 */
export const beginByRequest = (turn: Turn, request: string, candidate: Candidate): number => {
  const { ledger, now } = turn.context
  const { node, model, costGb } = candidate
  const cost = costGb === undefined ? {} : { costGb }
  ledger.beginLoad({ node: node.name, model, startedAt: now(), evicts: [], request, ...cost })
  return loadDeadlineMs(turn, candidate)
}

/**
 * The model is in memory: those whose slots were kept for it start now, oldest first. Slots were a guess while it loaded;
 * whoever has none after all asks again.
 */
export const adopt = ({ context, api }: Turn, node: string, model: string, tookMs: number): void => {
  const load = context.ledger.endLoad(node)
  context.samples.addLoad(node, modelKey(model), tookMs, load?.costGb)
  noteLoaded(context, node, tookMs)
  const { slots } = candidateAt(node, model, context.roster, context.ledger, context.samples.parallelism) ?? {
    slots: 1,
  }
  let free = slots - context.ledger.on(node, model).filter(({ state }) => state !== 'loading').length
  for (const reservation of context.ledger.on(node, model)) {
    if (reservation.state !== 'loading') continue
    const job = context.loading.get(reservation.request)
    context.loading.delete(reservation.request)
    if (job === undefined || free <= 0) {
      context.ledger.release(reservation.request)
      api.send(address.request(reservation.request), { type: 'placement.lost', node })
      continue
    }
    free -= 1
    reservation.state = 'running'
    reservation.since = context.now()
    const description = context.roster.get(node)?.description
    const wanted = description === undefined ? job.contextTokens : windowToLoad(description, job)
    // Whoever joined the load meets its window; asking for less, or for none, would reload the model.
    const contextTokens = load?.contextTokens === undefined ? wanted : Math.max(load.contextTokens, wanted ?? 0)
    const { request, attempt } = reservation
    const { arrivedAt, priority } = job
    const entry = { request, attempt, arrivedAt, priority, start: true, residency: 'cold' as const }
    api.send(address.queues, {
      type: 'queue.enqueue',
      node,
      model,
      entry: contextTokens === undefined ? entry : { ...entry, contextTokens },
    })
  }
}

/**
 * The load failed, or the node left: the slots are free and their requests ask again. A failure is that of the request
 * that asked for the load, which goes elsewhere; whoever joined may have the next load. `unsent` says how the node could
 * not be reached.
 */
export const lose = (
  { context, api }: Turn,
  node: string,
  message: string | undefined,
  unsent?: Failure['class'],
): void => {
  const load = context.ledger.endLoad(node)
  let failed = message
  for (const reservation of context.ledger.on(node)) {
    if (reservation.state !== 'loading') continue
    context.ledger.release(reservation.request)
    context.loading.delete(reservation.request)
    const elapsedMs = context.now() - reservation.since
    const failure =
      failed === undefined
        ? undefined
        : {
            class: unsent ?? ('status' as const),
            message: `${load?.model ?? reservation.model} could not be loaded: ${failed}`,
            bytes: 0,
            elapsedMs,
          }
    failed = undefined
    api.send(address.request(reservation.request), {
      type: 'placement.lost',
      node,
      model: reservation.model,
      ...(failure === undefined ? {} : { failure }),
    })
  }
}
