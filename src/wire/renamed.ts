import { encode } from './bytes'
import type { Json } from './json/values'

/** The client's own bytes where it named the model as the node does, else the same members with the node's name. */
export const renamed = (bytes: Uint8Array, body: Json, model: string): Uint8Array =>
  body.model === model ? bytes : encode(JSON.stringify({ ...body, model }))
