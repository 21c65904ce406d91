import { RouterError } from '../../src/domain/errors'
import type { FactOf, Outcome } from '../../src/domain/facts'
import type { Job } from '../../src/domain/job'
import type { Writable } from '../../src/domain/writable'
import type { Api } from '../flat'
import type { RequestEvent } from '../protocol'
import type { RequestContext } from './context'

const rate = (tokens: number | undefined, ms: number): number | undefined =>
  tokens === undefined || tokens < 2 || ms <= 0 ? undefined : (tokens * 1000) / ms

/** What the journal is told at the end of every request, however it ended. */
export const settledFact = (
  job: Job,
  outcome: Outcome,
  at: number,
  residency?: 'resident' | 'cold',
): FactOf<'request.settled'> => {
  const { id, dialect, asked, priority, key, arrivedAt } = job
  const fact: Writable<FactOf<'request.settled'>> = {
    type: 'request.settled',
    at,
    request: id,
    dialect,
    asked,
    priority,
    arrivedAt,
    outcome,
  }
  if (key !== undefined) fact.key = key
  if (residency !== undefined) fact.residency = residency
  return fact
}

/** The one terminal status: told to the journal, and to the client when no answer has begun. */
export const settle = (context: RequestContext, _event: RequestEvent, api: Api<RequestEvent>): void => {
  const { job, ports, ending, summary, place, firstByteMs } = context
  const { end, status, code, message, error } = ending ?? {
    end: 'failed' as const,
    status: 500,
    code: 'internal',
    message: 'settled without an ending',
    error: new RouterError('internal', 'The router failed on this request.'),
  }
  // The first byte of an answer that is not streamed comes after the last token: its decode time was never seen.
  const decodeMs = summary === undefined || !job.stream ? 0 : summary.durationMs - (firstByteMs ?? 0)
  const tokensPerSecond = rate(summary?.tokensOut, decodeMs)
  const engineMs = context.engineMs + (place === undefined ? 0 : ports.now() - context.startedAt)
  const outcome: Writable<Outcome> = {
    end,
    // A client that was sent its headers while it waited has its status already.
    status: context.hasHeaders && status !== 499 ? 200 : status,
    phase: context.phase,
    bytes: summary?.bytes ?? context.bytes,
    retries: context.retries,
  }
  if (code !== undefined) outcome.code = code
  if (message !== undefined) outcome.message = message
  if (place !== undefined) {
    outcome.node = place.node
    outcome.model = place.model
  }
  if (summary !== undefined) {
    outcome.serviceMs = summary.durationMs
    if (summary.tokensIn !== undefined) outcome.tokensIn = summary.tokensIn
    if (summary.tokensOut !== undefined) outcome.tokensOut = summary.tokensOut
    if (summary.thinkingExhausted) outcome.thinkingExhausted = true
    if (summary.toolCallsRepaired !== undefined) outcome.toolCallsRepaired = summary.toolCallsRepaired
  }
  if (firstByteMs !== undefined) {
    outcome.firstByteMs = firstByteMs
    outcome.ttftMs = context.startedAt - job.arrivedAt + firstByteMs
  }
  if (tokensPerSecond !== undefined) outcome.tokensPerSecond = tokensPerSecond
  if (engineMs > 0) outcome.engineMs = engineMs
  ports.journal.record(settledFact(job, outcome, ports.now(), place?.residency))
  const refusal =
    error ?? (end === 'client_disconnected' ? new RouterError('client_disconnected', 'The client left.') : undefined)
  if (refusal !== undefined && firstByteMs === undefined) api.defer(() => ports.refuse(job.id, refusal))
}
