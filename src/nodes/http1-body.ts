import { FramingError, type Framing } from './http1-head'

/** Takes the framing off a response body as it arrives. One per answer. */
export interface BodyDecoder {
  /**
   * The payload in these bytes, undefined if there is none. The result may be a view of the argument, whose content may
   * be moved: the caller gives the buffer away. Throws `FramingError`.
   */
  push(bytes: Buffer): Buffer | undefined
  /** The body is complete. */
  readonly done: boolean
  /** Bytes came after its end: the connection is out of step and not to be used again. */
  readonly overrun: boolean
  /** The end of the connection is the clean end of this body. */
  readonly endsWithConnection: boolean
}

/**
 * The engine keeps small buffers in its own heap. A view of one first moves it out of there, which costs several times as
 * much as a copy.
 */
const COPY_LIMIT_BYTES = 1_000

/** These of the bytes; of few a copy, of many a view. */
export const part = (bytes: Buffer, from: number, to: number): Buffer => {
  if (to - from > COPY_LIMIT_BYTES) return bytes.subarray(from, to)
  const copy = Buffer.allocUnsafe(to - from)
  bytes.copy(copy, 0, from, to)
  return copy
}

export const createBodyDecoder = (framing: Framing): BodyDecoder => {
  switch (framing.kind) {
    case 'none':
      return new LengthDecoder(0)
    case 'length':
      return new LengthDecoder(framing.length)
    case 'chunked':
      return new ChunkedDecoder()
    case 'until_close':
      return untilClose
  }
}

/** It remembers nothing, so one serves all. */
const untilClose: BodyDecoder = { push: (bytes) => bytes, done: false, overrun: false, endsWithConnection: true }

class LengthDecoder implements BodyDecoder {
  done: boolean
  overrun = false
  readonly endsWithConnection = false
  #remaining: number

  constructor(length: number) {
    this.#remaining = length
    this.done = length === 0
  }

  push(bytes: Buffer): Buffer | undefined {
    const payload = this.#remaining
    if (bytes.length <= payload) {
      this.#remaining = payload - bytes.length
      this.done = this.#remaining === 0
      return bytes
    }
    this.overrun = true
    this.#remaining = 0
    this.done = true
    return payload === 0 ? undefined : part(bytes, 0, payload)
  }
}

const CR = 0x0d
const LF = 0x0a
const SEMICOLON = 0x3b
const SPACE = 0x20
const TAB = 0x09
/** Chunk extensions and trailers are ignored, but not without end. */
const IGNORED_LIMIT_BYTES = 64 * 1024
/** 13 hex digits are below 2^53. */
const SIZE_DIGITS = 13

type ChunkState = 'size' | 'extension' | 'data' | 'data_end' | 'trailer' | 'done'

/**
 * Chunks are as a rule one token each and several may share one socket event: the payload of an event is moved together
 * in place, so that each event gives one piece and no allocation.
 */
class ChunkedDecoder implements BodyDecoder {
  done = false
  overrun = false
  readonly endsWithConnection = false
  #state: ChunkState = 'size'
  #remaining = 0
  #digits = 0
  #ignored = 0
  /** Bytes of the current trailer line; an empty line ends the body. */
  #trailerLine = 0

  push(bytes: Buffer): Buffer | undefined {
    let from = -1
    let to = -1
    let at = 0
    while (at < bytes.length && this.#state !== 'done') {
      if (this.#state !== 'data') {
        this.#state = this.#onFraming(bytes[at] as number)
        at += 1
        continue
      }
      const end = Math.min(at + this.#remaining, bytes.length)
      if (from === -1) {
        from = at
        to = end
      } else {
        bytes.copyWithin(to, at, end)
        to += end - at
      }
      this.#remaining -= end - at
      at = end
      if (this.#remaining === 0) this.#state = 'data_end'
    }
    this.done = this.#state === 'done'
    if (at < bytes.length) this.overrun = true
    return from === -1 ? undefined : part(bytes, from, to)
  }

  #onFraming(byte: number): ChunkState {
    switch (this.#state) {
      case 'size':
        return this.#onSize(byte)
      case 'extension':
        return this.#onExtension(byte)
      case 'data_end':
        return onDataEnd(byte)
      default:
        return this.#onTrailer(byte)
    }
  }

  #onSize(byte: number): ChunkState {
    if (byte === LF) return this.#endOfSizeLine()
    const digit = hexValue(byte)
    if (digit === -1) {
      if (this.#digits > 0 && (byte === CR || byte === SEMICOLON || byte === SPACE || byte === TAB)) return 'extension'
      throw new FramingError('the answer has an invalid chunk size')
    }
    this.#digits += 1
    if (this.#digits > SIZE_DIGITS) throw new FramingError('the answer has an absurd chunk size')
    this.#remaining = this.#remaining * 16 + digit
    return 'size'
  }

  #onExtension(byte: number): ChunkState {
    if (byte === LF) return this.#endOfSizeLine()
    this.#ignore()
    return 'extension'
  }

  #endOfSizeLine(): ChunkState {
    if (this.#digits === 0) throw new FramingError('the answer has a chunk without a size')
    this.#digits = 0
    return this.#remaining === 0 ? 'trailer' : 'data'
  }

  #onTrailer(byte: number): ChunkState {
    if (byte === CR) return 'trailer'
    if (byte !== LF) {
      this.#ignore()
      this.#trailerLine += 1
      return 'trailer'
    }
    const isEmpty = this.#trailerLine === 0
    this.#trailerLine = 0
    return isEmpty ? 'done' : 'trailer'
  }

  #ignore(): void {
    this.#ignored += 1
    if (this.#ignored > IGNORED_LIMIT_BYTES) {
      throw new FramingError('the answer has endless chunk extensions or trailers')
    }
  }
}

const onDataEnd = (byte: number): ChunkState => {
  if (byte === LF) return 'size'
  if (byte !== CR) throw new FramingError('the answer has a chunk that is longer than its size')
  return 'data_end'
}

const hexValue = (byte: number): number => {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
