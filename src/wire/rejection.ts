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

const upstreamOf = (error: unknown): NonNullable<ErrorDetails['upstream']> => {
  if (!isObject(error)) return {}
  const { type, code } = error
  return {
    ...(typeof type === 'string' && { type }),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
  }
}

/** vLLM gives that no type of its own, only these words, as OpenAI once did. */
const windowInWords = /maximum context length is (\d+) tokens/
const needInWords = /(?:has|have|requested|resulted in|contains(?: at least)?) (\d+) (?:input |output )?tokens/

const tokensInWords = (message: string): ErrorDetails['tokens'] => {
  const [have, need] = [windowInWords, needInWords].map((words) => Number(words.exec(message)?.[1]))
  return have && need && need > have ? { need, have } : undefined
}

/** llama-server tells both numbers beside its words. */
const tokensOf = (error: unknown, message: string): ErrorDetails['tokens'] => {
  if (!isObject(error)) return undefined
  const { n_prompt_tokens: need, n_ctx: have } = error
  return typeof need === 'number' && typeof have === 'number' ? { need, have } : tokensInWords(message)
}

const toError = (status: number, json: Json, request: string): RouterError => {
  const message = errorOf(json)?.message ?? `The node refused the request with status ${status}.`
  const upstream = upstreamOf(json.error)
  const isTooLarge =
    contextTypes.includes(upstream.type) ||
    contextTypes.includes(upstream.code) ||
    (status === 400 && windowInWords.test(message))
  if (isTooLarge) {
    const tokens = tokensOf(json.error, message)
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
