import { encode } from './bytes'
import type { NodeDialect, UpstreamRequest } from './exchange'
import type { Json } from './json/values'

const accepts = (dialect: NodeDialect, stream: boolean): string => {
  if (!stream) return 'application/json'
  return dialect === 'ollama' ? 'application/x-ndjson' : 'text/event-stream'
}

/** A JSON call to a node; bytes go as they are. */
export const upstreamRequest = (
  dialect: NodeDialect,
  path: string,
  body: Uint8Array | Json,
  stream: boolean,
): UpstreamRequest => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json', accept: accepts(dialect, stream) },
  body: body instanceof Uint8Array ? body : encode(JSON.stringify(body)),
  dialect,
  stream,
})
