import { type Job, modelKey } from '../../src/domain/job'
import type { Candidate } from '../../src/domain/placement'
import { windowToLoad } from '../../src/placement/window'
import { address } from '../protocol'
import type { Turn } from './context'

/** A load may take this many times what it took before. */
const LOAD_PATIENCE = 3

/** Deadline of a load in ms: the configured least, longer where this node's measured load times or rate say so. */
const loadDeadlineMs = ({ context }: Turn, { node, model, costGb }: Candidate): number => {
  const expected = context.samples.loadMs(node.name, modelKey(model), costGb)?.meanMs ?? 0
  return Math.max(context.config.limits.loadTimeoutMinMs, expected * LOAD_PATIENCE)
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
  ledger.reserve({ request: job.id, attempt, node, model, state: 'loading', since: now })
  ledger.chosen(node)
  context.loading.set(job.id, job)
  api.send(address.request(job.id), { type: 'placement.loading', node, model })
  if (ledger.loading(node) !== undefined) return
  const contextTokens = windowToLoad(candidate.node, job)
  ledger.beginLoad({
    node,
    model,
    startedAt: now,
    evicts,
    ...(candidate.costGb === undefined ? {} : { costGb: candidate.costGb }),
  })
  context.journal.record({ type: 'load.started', at: now, node, model, cause: 'request', evicts })
  api.send(address.runtime(node), {
    type: 'model.load',
    model,
    evicts,
    cause: 'request',
    deadlineMs: loadDeadlineMs(turn, candidate),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  })
}

/** The model is in memory: everybody whose slot was kept for it starts now. */
export const adopt = ({ context, api }: Turn, node: string, model: string, tookMs: number): void => {
  const load = context.ledger.endLoad(node)
  context.samples.addLoad(node, modelKey(model), tookMs, load?.costGb)
  for (const reservation of context.ledger.on(node, model)) {
    if (reservation.state !== 'loading') continue
    const job = context.loading.get(reservation.request)
    context.loading.delete(reservation.request)
    if (job === undefined) {
      context.ledger.release(reservation.request)
      continue
    }
    reservation.state = 'running'
    reservation.since = context.now()
    const description = context.roster.get(node)?.description
    const contextTokens = description === undefined ? job.contextTokens : windowToLoad(description, job)
    const { request, attempt } = reservation
    const entry = { request, attempt, arrivedAt: job.arrivedAt, start: true, residency: 'cold' as const }
    api.send(address.queues, {
      type: 'queue.enqueue',
      node,
      model,
      entry: contextTokens === undefined ? entry : { ...entry, contextTokens },
    })
  }
}

/** The load failed, or the node left: the slots are free and their requests ask again, elsewhere when it failed. */
export const lose = ({ context, api }: Turn, node: string, message: string | undefined): void => {
  const load = context.ledger.endLoad(node)
  for (const reservation of context.ledger.on(node)) {
    if (reservation.state !== 'loading') continue
    context.ledger.release(reservation.request)
    context.loading.delete(reservation.request)
    const elapsedMs = context.now() - reservation.since
    const failure =
      message === undefined
        ? undefined
        : {
            class: 'status' as const,
            message: `${load?.model ?? reservation.model} could not be loaded: ${message}`,
            bytes: 0,
            elapsedMs,
          }
    api.send(address.request(reservation.request), {
      type: 'placement.lost',
      node,
      ...(failure === undefined ? {} : { failure }),
    })
  }
}
