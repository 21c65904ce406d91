/** An answer that nobody looks into: sound, pictures, reports of progress. */
import type { ReplyTransform } from '../exchange'

/** Goes on as it comes; it is whole when the node ended it cleanly. */
export const relayBytes = (contentType: string): ReplyTransform => {
  let begun = false
  let ended = false
  return {
    contentType,
    push(chunk) {
      begun = true
      return chunk
    },
    end() {
      ended = true
      return undefined
    },
    complete: () => ended,
    problem: () => undefined,
    begun: () => begun,
    usage: () => ({}),
  }
}
