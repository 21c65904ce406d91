import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { NodeFault } from '../ports/node-gateway'
import { endpoint } from './endpoint'
import type { NodeHttp } from './http'

export interface Peek {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body; undefined when it is not JSON. */
  readonly body: unknown
}

/** One GET for a fingerprint. Undefined when nothing answers: at this point that is a finding, not a failure. */
export const peek = async (
  baseUrl: string,
  path: string,
  http: NodeHttp,
  signal: AbortSignal,
): Promise<Peek | undefined> => {
  try {
    const answer = await http.raw(endpoint(baseUrl, path), { signal })
    return { ...answer, body: parse(answer.text) }
  } catch (error) {
    if (error instanceof NodeFault) return undefined
    throw error
  }
}

/** The body of a 2xx answer if it has the shape. A server that answers anything with 200 (LM Studio) fails here. */
export const shaped = <S extends TSchema>(schema: S, answer: Peek | undefined): Static<S> | undefined =>
  answer && answer.status >= 200 && answer.status < 300 && Value.Check(schema, answer.body) ? answer.body : undefined

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
