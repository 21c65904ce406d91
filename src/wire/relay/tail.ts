import { concat, decode } from '../bytes'

/** Ends of answers hold what matters of them (end marker, usage); 4 KB hold these for every known server. */
const tailBytes = 4_096

/** Remembers the end of a byte stream by reference: no copy, nothing decoded until somebody asks. */
export interface Tail {
  add(chunk: Uint8Array): void
  /** At least the last 4 KB as text, or everything; characters cut at its beginning are damaged. */
  text(): string
}

export const createTail = (): Tail => {
  const pieces: Uint8Array[] = []
  let length = 0
  let text: string | undefined
  return {
    add(chunk) {
      pieces.push(chunk)
      length += chunk.length
      text = undefined
      while (length - (pieces[0]?.length ?? length) >= tailBytes) length -= pieces.shift()?.length ?? 0
    },
    text() {
      text ??= decode(concat(pieces).subarray(-tailBytes))
      return text
    },
  }
}
