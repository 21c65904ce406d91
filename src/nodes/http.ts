import type { TSchema, Static } from '@sinclair/typebox'
import type { NodeDescription } from '../domain/node'

/** Control calls to a node: status checked, shape checked, failures as `NodeFault`. Not for inference. */
export interface NodeHttp {
  /** 2xx JSON that fits the schema, else a `NodeFault` (class `status`, `bad_content`, `connect`, …). */
  json<S extends TSchema>(schema: S, url: string, options: CallOptions): Promise<Static<S>>
  /** Any status: for fingerprints and for answers whose status matters. Body at most 4 MB. */
  raw(url: string, options: CallOptions): Promise<{ status: number; headers: Headers; text: string }>
}

export interface CallOptions {
  readonly signal: AbortSignal
  readonly node?: NodeDescription
  readonly method?: 'GET' | 'POST'
  readonly body?: unknown
  /** Own deadline in ms instead of the client's usual one; `Infinity` leaves it to the signal (loads take minutes). */
  readonly timeoutMs?: number
}
