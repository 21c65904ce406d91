import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Failure } from '../domain/facts'
import { NodeFault } from '../ports/node-gateway'
import { errorText, isHtml } from './error-text'
import { failureOf, placeOf } from './fetch-fault'
import type { CallOptions, NodeHttp } from './http'

export interface NodeHttpOptions {
  /** Deadline of a whole call, body included, in ms. Read at each call. */
  readonly timeoutMs: number
  /** Our instance id: sent as `x-fleet-via`, so that a router behind this address can tell that the call is ours. */
  readonly instance: string
  now(): number
}

const MAX_BODY_BYTES = 4 * 1024 * 1024
const MAX_HEAD_BYTES = 64 * 1024

// `timeout: false`: Bun's own one is coarse and ends long loads. `proxy: false`: an `HTTP_PROXY` in the environment would
// carry calls to 127.0.0.1 to a proxy, while inference connects directly. Bun's types know neither value.
const DIRECT: object = { timeout: false, proxy: false }

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly elapsedMs: number
}

/** Control calls to nodes over `fetch`: bounded in time and size, every failure a `NodeFault` that says what happened. */
export const createNodeHttp = (settings: NodeHttpOptions): NodeHttp => {
  const { instance, now } = settings
  const call = async (url: string, options: CallOptions): Promise<Answer> => {
    const startedAt = now()
    const limitMs = options.timeoutMs ?? settings.timeoutMs
    const deadline = Number.isFinite(limitMs) ? AbortSignal.timeout(limitMs) : undefined
    const progress = { bytes: 0, answered: false }
    try {
      const response = await fetch(url, {
        ...DIRECT,
        ...requestOf(options, instance),
        signal: deadline ? AbortSignal.any([options.signal, deadline]) : options.signal,
      })
      progress.answered = true
      checkHead(response.headers, url)
      const text = await readText(response, url, progress)
      return { status: response.status, headers: response.headers, text, elapsedMs: now() - startedAt }
    } catch (error) {
      const elapsedMs = now() - startedAt
      if (error instanceof NodeFault) throw new NodeFault({ ...error.failure, bytes: progress.bytes, elapsedMs })
      const ended = deadline?.aborted ? 'deadline' : options.signal.aborted ? 'caller' : undefined
      throw new NodeFault(failureOf(error, { url, elapsedMs, ...progress, ...(ended && { ended }) }))
    }
  }

  const json = async <S extends TSchema>(schema: S, url: string, options: CallOptions): Promise<Static<S>> => {
    const answer = await call(url, options)
    const fail = (kind: Failure['class'], message: string, status?: number): never => {
      const { elapsedMs, text } = answer
      throw new NodeFault({ class: kind, message, bytes: text.length, elapsedMs, ...(status && { status }) })
    }
    if (answer.headers.get('x-fleet-instance') === instance) fail('rejected', `${placeOf(url)} is this router itself`)
    if (answer.status < 200 || answer.status > 299) fail('status', statusText(url, answer), answer.status)
    const body = parse(answer.text)
    if (body === undefined)
      fail('bad_content', `${placeOf(url)} answered ${isHtml(answer.text) ? 'a web page' : 'text'} instead of JSON`)
    if (!Value.Check(schema, body))
      fail('bad_content', `${placeOf(url)} answered JSON of another shape: ${misfit(schema, body)}`)
    return body as Static<S>
  }

  const raw: NodeHttp['raw'] = async (url, options) => {
    const { status, headers, text } = await call(url, options)
    return { status, headers, text }
  }

  return { json, raw }
}

const requestOf = ({ node, method = 'GET', body }: CallOptions, instance: string): RequestInit => ({
  method,
  redirect: 'manual',
  headers: {
    accept: 'application/json',
    'x-fleet-via': instance,
    ...(node?.key && { authorization: `Bearer ${node.key}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  },
  ...(body !== undefined && { body: JSON.stringify(body) }),
  // Bun repeats a GET, but not a POST, when the idle connection that it picked turns out to be closed.
  keepalive: method === 'GET',
})

const fault = (kind: Failure['class'], message: string): NodeFault =>
  new NodeFault({ class: kind, message, bytes: 0, elapsedMs: 0 })

const checkHead = (headers: Headers, url: string): void => {
  let bytes = 0
  for (const [name, value] of headers) bytes += name.length + value.length
  if (bytes > MAX_HEAD_BYTES) throw fault('protocol', `${placeOf(url)} sent ${Math.round(bytes / 1024)} KB of headers`)
}

const readText = async (response: Response, url: string, progress: { bytes: number }): Promise<string> => {
  if (!response.body) return ''
  const chunks: Uint8Array[] = []
  for await (const chunk of response.body) {
    progress.bytes += chunk.byteLength
    // Leaving the loop cancels the stream, which closes the connection.
    if (progress.bytes > MAX_BODY_BYTES) throw fault('bad_content', `${placeOf(url)} sent more than 4 MB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const misfit = (schema: TSchema, body: unknown): string => {
  const first = Value.Errors(schema, body).First()
  return first ? `${first.path || 'the body'}: ${first.message}` : 'unexpected fields'
}

const statusText = (url: string, { status, headers, text }: Answer): string => {
  const place = placeOf(url)
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location)
    return `${place} redirects to ${placeOf(location)}: use that address for the node`
  const said = errorText(text)
  const hint = said || !(status === 401 || status === 403) ? '' : ': it wants a key, or does not accept this host name'
  return `${place} answered ${status}${said ? `: ${said}` : hint}`
}
