import { concat, decode } from './bytes'

const newline = 0x0a

/** Cuts a byte stream into lines. */
export interface LineSplitter {
  /** The lines that `chunk` completes, without their ends. */
  push(chunk: Uint8Array): string[]
  /** What stands after the last line end, if anything. */
  end(): string | undefined
}

const line = (bytes: Uint8Array): string => decode(bytes.at(-1) === 0x0d ? bytes.subarray(0, -1) : bytes)

/** Decodes whole lines only, so that a character cut by a chunk's edge stays whole. */
export const createLineSplitter = (): LineSplitter => {
  let pending: Uint8Array[] = []
  return {
    push(chunk) {
      const lines: string[] = []
      let start = 0
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
        pending.push(chunk.subarray(start, end))
        lines.push(line(concat(pending)))
        pending = []
        start = end + 1
      }
      if (start < chunk.length) pending.push(chunk.subarray(start))
      return lines
    },
    end() {
      const rest = pending
      pending = []
      return rest.length === 0 ? undefined : line(concat(rest))
    },
  }
}

/** One document of a stream: the data of a server-sent event, a line of NDJSON, or a whole body. */
export interface Frame {
  readonly data: string
  /** The event's name, where the framing has names. */
  readonly event?: string
}

export interface Framer {
  push(chunk: Uint8Array): Frame[]
  end(): Frame[]
}

/** The whole body as one frame, for answers that are not streams. */
export const createWholeFramer = (): Framer => {
  const pieces: Uint8Array[] = []
  return {
    push(chunk) {
      pieces.push(chunk)
      return []
    },
    end: () => [{ data: decode(concat(pieces)) }],
  }
}
