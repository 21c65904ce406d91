/** An answer that is one JSON object and is looked at as a whole before any of it goes out. */
import { concat, decode } from './bytes'
import type { ReplyTransform, Usage } from './exchange'
import type { Json } from './json/values'
import { parseReply } from './json/values'
import { errorOf } from './replies'

/** What was made of a node's answer, or why it is none. */
export type Finished =
  | { readonly body: Uint8Array; readonly usage?: Usage }
  | { readonly problem: { readonly message: string; readonly status?: number } }

/** `finish` gets the parsed answer and its bytes; an error that the node put into it never reaches it. */
export const gathered = (contentType: string, finish: (json: Json, body: Uint8Array) => Finished): ReplyTransform => {
  const pieces: Uint8Array[] = []
  let finished: Finished | undefined

  const read = (): Finished | undefined => {
    const body = concat(pieces)
    const json = parseReply(decode(body))
    if (json === undefined) return undefined
    const problem = errorOf(json)
    return problem ? { problem } : finish(json, body)
  }

  return {
    contentType,
    push(chunk) {
      pieces.push(chunk)
      return undefined
    },
    end() {
      finished = read()
      return finished && 'body' in finished ? finished.body : undefined
    },
    complete: () => finished !== undefined && 'body' in finished,
    problem: () => (finished && 'problem' in finished ? finished.problem : undefined),
    begun: () => finished !== undefined && 'body' in finished,
    usage: () => (finished && 'body' in finished ? (finished.usage ?? {}) : {}),
  }
}
