import { RouterError } from '../../src/domain/errors'
import type { Outcome } from '../../src/domain/facts'
import type { Api } from '../flat'
import type { RequestEvent } from '../protocol'
import type { RequestContext } from './context'

const rate = (tokens: number | undefined, ms: number): number | undefined =>
  tokens === undefined || tokens < 2 || ms <= 0 ? undefined : (tokens * 1000) / ms

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
  const outcome: Outcome = {
    end,
    // A client that was sent its headers while it waited has its status already.
    status: context.hasHeaders && status !== 499 ? 200 : status,
    ...(code === undefined ? {} : { code }),
    ...(message === undefined ? {} : { message }),
    ...(place === undefined ? {} : { node: place.node, model: place.model }),
    phase: context.phase,
    ...(summary?.tokensIn === undefined ? {} : { tokensIn: summary.tokensIn }),
    ...(summary?.tokensOut === undefined ? {} : { tokensOut: summary.tokensOut }),
    ...(summary?.thinkingExhausted ? { thinkingExhausted: true } : {}),
    ...(firstByteMs === undefined ? {} : { ttftMs: context.startedAt - job.arrivedAt + firstByteMs }),
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...(summary === undefined ? {} : { serviceMs: summary.durationMs }),
    ...(tokensPerSecond === undefined ? {} : { tokensPerSecond }),
    bytes: summary?.bytes ?? context.bytes,
    ...(engineMs > 0 ? { engineMs } : {}),
    retries: context.retries,
  }
  ports.journal.record({
    type: 'request.settled',
    at: ports.now(),
    request: job.id,
    dialect: job.dialect,
    asked: job.asked,
    priority: job.priority,
    ...(job.key === undefined ? {} : { key: job.key }),
    ...(place === undefined ? {} : { residency: place.residency }),
    arrivedAt: job.arrivedAt,
    outcome,
  })
  const refusal =
    error ?? (end === 'client_disconnected' ? new RouterError('client_disconnected', 'The client left.') : undefined)
  if (refusal !== undefined && firstByteMs === undefined) api.defer(() => ports.refuse(job.id, refusal))
}
