import type { RequestContext } from './context'

/** ms until the stream could have been silent (or its client stalled) for the configured time. */
export const untilIdleMs = ({ flow, ports, startedAt }: RequestContext): number => {
  const limit = ports.config.limits.streamIdleTimeoutMs
  const last = flow === undefined ? startedAt : flow.clientStalledSince > 0 ? flow.clientStalledSince : flow.lastByteAt
  return Math.max(1, Math.min(limit, last + limit - ports.now()))
}

/** It takes minutes, in which its node is asked every few seconds, and has a limit of its own. */
export const isVideo = ({ job }: RequestContext): boolean => job.needs.includes('video')

/** ms until the answer has taken as long as any may. */
export const untilTotalMs = (context: RequestContext): number => {
  const { ports, startedAt } = context
  const { totalTimeoutMs = Number.POSITIVE_INFINITY, videoTimeoutMs } = ports.config.limits
  const limit = isVideo(context) ? videoTimeoutMs : totalTimeoutMs
  return Math.max(1, startedAt + limit - ports.now())
}

/** A request without a first byte is suspicious after this multiple of what whole answers take there. */
const STALL_PATIENCE = 2

/** ms after which a request without a first byte makes its node suspect. */
export const untilStallMs = ({ ports, place }: RequestContext): number => {
  const usual = place === undefined ? undefined : ports.serviceMs(place.node, place.model)
  return Math.max(ports.config.health.stallAfterMs, STALL_PATIENCE * (usual ?? 0)) + (place?.loadMs ?? 0)
}

export const isClientStalled = ({ flow, ports }: RequestContext): boolean =>
  flow !== undefined &&
  flow.clientStalledSince > 0 &&
  ports.now() - flow.clientStalledSince >= ports.config.limits.streamIdleTimeoutMs

export const isSilent = ({ flow, ports }: RequestContext): boolean =>
  flow !== undefined &&
  flow.clientStalledSince === 0 &&
  ports.now() - flow.lastByteAt >= ports.config.limits.streamIdleTimeoutMs
