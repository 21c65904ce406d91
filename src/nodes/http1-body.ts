import { FramingError, type Framing } from './http1-head'

/** Takes the framing off a response body as it arrives. One per answer. */
export interface BodyDecoder {
  /**
   * The payload in these bytes, undefined if there is none. The result is a view of the argument, whose content may be
   * moved: the caller gives the buffer away. Throws `FramingError`.
   */
  push(bytes: Buffer): Buffer | undefined
  /** The body is complete. */
  readonly done: boolean
  /** Bytes came after its end: the connection is out of step and not to be used again. */
  readonly overrun: boolean
  /** The end of the connection is the clean end of this body. */
  readonly endsWithConnection: boolean
}

export const createBodyDecoder = (framing: Framing): BodyDecoder => {
  switch (framing.kind) {
    case 'none':
      return lengthDecoder(0)
    case 'length':
      return lengthDecoder(framing.length)
    case 'chunked':
      return chunkedDecoder()
    case 'until_close':
      return { push: (bytes) => bytes, done: false, overrun: false, endsWithConnection: true }
  }
}

const lengthDecoder = (length: number): BodyDecoder => {
  let remaining = length
  let overrun = false
  return {
    push(bytes) {
      if (bytes.length <= remaining) {
        remaining -= bytes.length
        return bytes
      }
      const payload = remaining === 0 ? undefined : bytes.subarray(0, remaining)
      overrun = true
      remaining = 0
      return payload
    },
    get done() {
      return remaining === 0
    },
    get overrun() {
      return overrun
    },
    endsWithConnection: false,
  }
}

const CR = 0x0d
const LF = 0x0a
/** Chunk extensions and trailers are ignored, but not without end. */
const IGNORED_LIMIT_BYTES = 64 * 1024
/** 13 hex digits are below 2^53. */
const SIZE_DIGITS = 13

type ChunkState = 'size' | 'extension' | 'data' | 'data_end' | 'trailer' | 'done'

/**
 * Chunks are as a rule one token each and several may share one socket event: the payload of an event is moved together
 * in place, so that each event gives one piece and no allocation.
 */
const chunkedDecoder = (): BodyDecoder => {
  let state: ChunkState = 'size'
  let overrun = false
  let remaining = 0
  let digits = 0
  let ignored = 0
  /** Bytes of the current trailer line; an empty line ends the body. */
  let trailerLine = 0

  const ignore = (): void => {
    ignored += 1
    if (ignored > IGNORED_LIMIT_BYTES) throw new FramingError('the answer has endless chunk extensions or trailers')
  }
  const endOfSizeLine = (): ChunkState => {
    if (digits === 0) throw new FramingError('the answer has a chunk without a size')
    digits = 0
    return remaining === 0 ? 'trailer' : 'data'
  }
  const onSize = (byte: number): ChunkState => {
    if (byte === LF) return endOfSizeLine()
    const digit = hexValue(byte)
    if (digit === -1) {
      if (digits > 0 && (byte === 0x3b || byte === 0x20 || byte === 0x09 || byte === CR)) return 'extension'
      throw new FramingError('the answer has an invalid chunk size')
    }
    digits += 1
    if (digits > SIZE_DIGITS) throw new FramingError('the answer has an absurd chunk size')
    remaining = remaining * 16 + digit
    return 'size'
  }
  const onExtension = (byte: number): ChunkState => {
    if (byte === LF) return endOfSizeLine()
    ignore()
    return 'extension'
  }
  const onDataEnd = (byte: number): ChunkState => {
    if (byte === LF) return 'size'
    if (byte !== CR) throw new FramingError('the answer has a chunk that is longer than its size')
    return 'data_end'
  }
  const onTrailer = (byte: number): ChunkState => {
    if (byte === CR) return 'trailer'
    if (byte !== LF) {
      ignore()
      trailerLine += 1
      return 'trailer'
    }
    const isEmpty = trailerLine === 0
    trailerLine = 0
    return isEmpty ? 'done' : 'trailer'
  }
  const onFraming = (byte: number): ChunkState => {
    switch (state) {
      case 'size':
        return onSize(byte)
      case 'extension':
        return onExtension(byte)
      case 'data_end':
        return onDataEnd(byte)
      default:
        return onTrailer(byte)
    }
  }

  return {
    push(bytes) {
      let from = -1
      let to = -1
      let at = 0
      while (at < bytes.length && state !== 'done') {
        if (state !== 'data') {
          state = onFraming(bytes[at] as number)
          at += 1
          continue
        }
        const end = Math.min(at + remaining, bytes.length)
        if (from === -1) {
          from = at
          to = end
        } else {
          bytes.copyWithin(to, at, end)
          to += end - at
        }
        remaining -= end - at
        at = end
        if (remaining === 0) state = 'data_end'
      }
      if (at < bytes.length) overrun = true
      return from === -1 ? undefined : bytes.subarray(from, to)
    },
    get done() {
      return state === 'done'
    },
    get overrun() {
      return overrun
    },
    endsWithConnection: false,
  }
}

const hexValue = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
