/** What Ollama clients do to the disk of one node: pull, push, create, copy, delete, and files for `create`. */
import type { Job } from '../domain/job'
import { encode } from './bytes'
import type { Arrival } from './dialect'
import { errorBody } from './errors'
import type { Exchange } from './exchange'
import type { Json } from './json/values'
import { booleanAt, invalid, parseBody, stringAt } from './json/values'
import { rejectionOf } from './rejection'
import { relayBytes } from './relay/bytes'

/** One endpoint. Its bytes pass as they are: the names in them are the node's own. */
export interface ManagementRoute {
  readonly method: 'POST' | 'DELETE' | 'HEAD'
  /** A final `/*` is the digest of a file. */
  readonly path: string
  /** Throws `invalid_request`. `node` is the one that it is for. */
  decode(arrival: Arrival, node: string): Exchange
}

interface Endpoint {
  readonly method: ManagementRoute['method']
  readonly path: string
  readonly name: string
  /** Tells its progress in lines unless it is asked not to. */
  readonly reports?: true
  /** What it is about, by the client's words. */
  subject(arrival: Arrival): string
}

const bodyOf = ({ body }: Arrival): Json => parseBody(body)

const modelOf = (arrival: Arrival): string => {
  const body = bodyOf(arrival)
  const name = stringAt(body, 'model') || stringAt(body, 'name')
  if (!name) throw invalid('model is required', 'model')
  return name
}

const sourceOf = (arrival: Arrival): string => {
  const source = stringAt(bodyOf(arrival), 'source')
  if (!source) throw invalid('source is required', 'source')
  return source
}

const digestOf = ({ path }: Arrival): string => path.slice(path.lastIndexOf('/') + 1)

const endpoints: readonly Endpoint[] = [
  { method: 'POST', path: '/api/pull', name: 'pull', reports: true, subject: modelOf },
  { method: 'POST', path: '/api/push', name: 'push', reports: true, subject: modelOf },
  { method: 'POST', path: '/api/create', name: 'create', reports: true, subject: modelOf },
  { method: 'POST', path: '/api/copy', name: 'copy', subject: sourceOf },
  { method: 'DELETE', path: '/api/delete', name: 'delete', subject: modelOf },
  { method: 'HEAD', path: '/api/blobs/*', name: 'blobs', subject: digestOf },
  { method: 'POST', path: '/api/blobs/*', name: 'blobs', subject: digestOf },
]

const jsonType = 'application/json'

const decode = ({ method, name, reports, subject }: Endpoint, arrival: Arrival, node: string): Exchange => {
  const asked = subject(arrival)
  const stream = reports === true && booleanAt(bodyOf(arrival), 'stream') !== false
  const job: Job = {
    ...arrival.context,
    id: arrival.id,
    dialect: 'ollama',
    operation: `ollama.${name}`,
    asked,
    models: [asked],
    stream,
    needs: [],
    promptTokens: { value: 0, basis: 'estimated' },
    pin: node,
    arrivedAt: arrival.at,
  }
  const headers = { 'content-type': arrival.headers.get('content-type') ?? jsonType }
  return {
    job,
    request: () => ({ method, path: arrival.path, headers, body: arrival.body, dialect: 'ollama', stream }),
    reply: (_request, _model, _timing, contentType) => relayBytes(contentType ?? jsonType),
    rejection: (_request, status, body) => rejectionOf('ollama', job.id, true, status, body),
    inBandError: (error) => encode(`\n${JSON.stringify(errorBody('ollama', error.with({ requestId: job.id })))}\n`),
  }
}

export const ollamaManagement: readonly ManagementRoute[] = endpoints.map((endpoint) => ({
  method: endpoint.method,
  path: endpoint.path,
  decode: (arrival, node) => decode(endpoint, arrival, node),
}))
