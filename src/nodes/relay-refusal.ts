import type { Failure } from '../domain/facts'
import { errorText } from './error-text'
import type { UpstreamReply } from './upstream'

/** An error answer longer than this is not read to its end. */
const ERROR_BODY_BYTES = 1024 * 1024
const HTML = /^text\/html/i
const BUSY = /server busy|queue is full/i
/** llama-server, from its start until its model is in memory. */
const STARTING = /\bloading model\b/i
/** How engines say that they do not know a model. */
const MISSING =
  /\bmodel\b.{0,200}\b(?:does not exist|not found)\b|\bno (?:router|local server)\b.*\bmodel\b|invalid model identifier/i

/** Why an answer's content cannot be the answer to an inference request, whatever its status. */
export const unusableContent = (reply: UpstreamReply): string | undefined => {
  if (isHtml(reply)) return 'the node answered with a web page'
  const coding = reply.headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return `the node compressed its answer (${coding}) unasked`
  return undefined
}

/**
 * What an answer outside 2xx means for the router. `rejected`: the request itself is wrong, so no other node would take
 * it. `model_missing`: this node lists the model and does not have it; another one may. 401 and 403 are about the router's own credential, 408 and 425 about this moment: both concern this node only.
 */
export const refusalClass = (reply: UpstreamReply, body: Uint8Array): Failure['class'] => {
  const { status } = reply
  if (status === 429) return 'overloaded'
  if (status === 503 && BUSY.test(textOf(body))) return 'overloaded'
  if (status === 503 && STARTING.test(textOf(body))) return 'starting'
  if ((status === 404 || status === 400) && MISSING.test(errorText(textOf(body)))) return 'model_missing'
  const isOurs = status === 401 || status === 403 || status === 408 || status === 425
  return status >= 400 && status < 500 && !isOurs && !isHtml(reply) ? 'rejected' : 'status'
}

/** The same for an error in an answer of status 200: SGLang says in its first event that its queue is full. */
export const eventClass = (problem: { readonly message: string; readonly status?: number }): Failure['class'] => {
  const { status, message } = problem
  return status === 429 || (status === 503 && BUSY.test(message)) ? 'overloaded' : 'error_event'
}

/**
 * One line for records: the status and, where the node sent a JSON error, what `keep` leaves of its text. A proxy's page or
 * a stack trace does not belong there.
 */
export const refusalMessage = (reply: UpstreamReply, body: Uint8Array, keep: (said: string) => string): string => {
  const said = reply.headers['content-type']?.includes('json') ? keep(errorText(textOf(body))) : ''
  return `the node answered ${reply.status}${said === '' ? '' : `: ${said}`}`
}

/** The body up to 1 MB; what is longer is left unread and its connection closed. */
export const readErrorBody = async (reply: UpstreamReply): Promise<Uint8Array> => {
  const pieces: Uint8Array[] = []
  let bytes = 0
  while (bytes < ERROR_BODY_BYTES) {
    const piece = await reply.read()
    if (!piece) return join(pieces)
    pieces.push(piece)
    bytes += piece.length
  }
  reply.close()
  return join(pieces).subarray(0, ERROR_BODY_BYTES)
}

export const join = (pieces: readonly Uint8Array[]): Uint8Array => {
  const [only] = pieces
  return pieces.length === 1 && only ? only : Buffer.concat(pieces)
}

const isHtml = ({ headers }: UpstreamReply): boolean => HTML.test(headers['content-type'] ?? '')

const textOf = (body: Uint8Array): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
