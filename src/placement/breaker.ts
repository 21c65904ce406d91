import type { Failure } from '../domain/facts'
import type { Lane } from '../domain/job'
import { isMediaLane } from '../domain/lanes'

/** The server says that it does not do such work at all. */
const NOT_IMPLEMENTED = 501

/**
 * The breaker counts what the node did wrong: broken connections, its own 5xx, broken streams. Overload, the client's
 * errors and cancels, a model that is not there, an engine that is still starting, refusals of our own and an idle connection
 * that had died unnoticed say nothing about it. Nor does 501: a llama-server that chats answers so to every request for embeddings.
 */
export const countsAgainstNode = ({ class: kind, status, stale }: Failure): boolean =>
  kind !== 'rejected' &&
  kind !== 'overloaded' &&
  kind !== 'starting' &&
  kind !== 'model_missing' &&
  stale !== true &&
  !(kind === 'status' && status === NOT_IMPLEMENTED)

export const failuresWithin = (failures: readonly { readonly at: number }[], now: number, windowMs: number): number =>
  failures.reduce((count, { at }) => count + (now - at < windowMs ? 1 : 0), 0)

/** The node's own answer, which may be due to what it was asked. */
const isAnswer = ({ class: kind, status }: Failure): boolean =>
  kind === 'error_event' || (kind === 'status' && status === 500)

/**
 * What a server answers about pictures, sound or video. Only that lane is left alone for it, and by rules of its own:
 * otherwise a client could take a server away from everybody with a few wishes that fail.
 */
export const isOfLaneOnly = ({ class: kind, status = 0 }: Failure, lane: Lane): boolean =>
  isMediaLane(lane) && (kind === 'error_event' || (kind === 'status' && status >= 500))

/** Two nodes failed on a request with the very same words: it is the request that is wrong, and neither of them. */
export const isSameFault = (first: Failure, second: Failure): boolean =>
  isAnswer(first) && first.class === second.class && first.status === second.status && first.message === second.message

/** Each try that fails doubles the wait, up to the most. */
export const nextRetryMs = (current: number, mostMs: number): number => Math.min(mostMs, current * 2)

/** No engine has seen the request: no connection could be made, or the server said that its engine is still starting. */
export const isUnsent = ({ class: kind }: Pick<Failure, 'class'>): boolean =>
  kind === 'connect' || kind === 'connect_timeout' || kind === 'dns' || kind === 'starting'

/** It could not be reached or hung up: a sign for the node's health, not only for the breaker. */
export const isOutOfReach = (failure: Failure): boolean => isUnsent(failure) || failure.class === 'reset'
