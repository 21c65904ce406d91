/** A node's own 4xx, passed on in the client's shape. */
import type { ErrorDetails } from '../domain/errors'
import { RouterError } from '../domain/errors'
import type { DialectName } from '../domain/job'
import { decode, encode } from './bytes'
import { errorBody, errorStatus, fleetMember } from './errors'
import type { Exchange } from './exchange'
import type { Json } from './json/values'
import { isObject, parseReply } from './json/values'
import { errorOf } from './replies'

/** llama-server's words for a prompt that does not fit its window; OpenAI clients know the other code. */
const contextTypes: readonly unknown[] = ['exceed_context_size_error', 'context_length_exceeded']

/** FastAPI's list of members that are wrong; their values, which it repeats, are the client's and stay out. */
const readInvalid = (detail: readonly unknown[]): string =>
  detail
    .filter(isObject)
    .map(({ loc, msg }) => [...(Array.isArray(loc) ? [loc.join('.')] : []), msg].join(': '))
    .join('; ')

/**
 * The object in which an engine says what is wrong: `error`, the body itself (SGLang, early vLLM), or `detail` (FastAPI,
 * KoboldCpp). Ollama hands on the words of the engine below it as JSON inside its text.
 */
const complaintOf = (body: Json): Json => {
  const { error, detail } = body
  if (isObject(error)) return error
  if (typeof error === 'string') {
    const inner = parseReply(error)
    return inner ? complaintOf(inner) : { message: error }
  }
  if (Array.isArray(detail)) return { message: readInvalid(detail) }
  if (isObject(detail)) return { message: detail.msg, type: detail.type }
  return typeof detail === 'string' ? { message: detail } : body
}

const upstreamOf = ({ type, code }: Json): NonNullable<ErrorDetails['upstream']> => ({
  ...(typeof type === 'string' && { type }),
  ...((typeof code === 'string' || typeof code === 'number') && { code }),
})

/** Most engines give a prompt that is too long no type of its own, only words, each its own ones. */
const overflowInWords =
  /maximum context length (?:is|of) \d+|(?:exceeds?|longer than|greater than)\b.{0,40}\bcontext (?:length|size|window)/
const windowInWords = /context (?:length|size) (?:is |of |\()(\d+) tokens/
const needInWords =
  /(?:(?:has|have|requested|a total of|resulted in|contains(?: at least)?) |input \()(\d+) (?:input |output )?tokens/

const tokensInWords = (message: string): ErrorDetails['tokens'] => {
  const [have, need] = [windowInWords, needInWords].map((words) => Number(words.exec(message)?.[1]))
  return have && need && need > have ? { need, have } : undefined
}

/** llama-server tells both numbers beside its words. */
const tokensOf = ({ n_prompt_tokens: need, n_ctx: have }: Json, message: string): ErrorDetails['tokens'] =>
  typeof need === 'number' && typeof have === 'number' ? { need, have } : tokensInWords(message)

const toError = (status: number, json: Json, request: string): RouterError => {
  const complaint = complaintOf(json)
  const said = typeof complaint.message === 'string' && complaint.message !== ''
  const message = said ? String(complaint.message) : `The node refused the request with status ${status}.`
  const upstream = upstreamOf(complaint)
  const isTooLarge =
    contextTypes.includes(upstream.type) ||
    contextTypes.includes(upstream.code) ||
    (status === 400 && overflowInWords.test(message))
  if (isTooLarge) {
    const tokens = tokensOf(complaint, message)
    return new RouterError('context_too_large', message, { requestId: request, ...(tokens && { tokens }) })
  }
  return new RouterError('upstream_rejected', message, { status, requestId: request, upstream })
}

/** Where node and client speak alike, members that we do not know stay; otherwise only status and message do. */
export const rejectionOf = (
  dialect: DialectName,
  request: string,
  alike: boolean,
  status: number,
  body: Uint8Array,
): ReturnType<Exchange['rejection']> => {
  const json = parseReply(decode(body)) ?? {}
  const error = toError(status, json, request)
  const kept = alike && error.code === 'upstream_rejected' && errorOf(json) !== undefined
  const answer = kept ? { ...json, fleet: fleetMember(error) } : errorBody(dialect, error)
  return {
    status: errorStatus(error, dialect),
    contentType: 'application/json; charset=utf-8',
    body: encode(JSON.stringify(answer)),
  }
}
