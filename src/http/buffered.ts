import { RouterError } from '../domain/errors'

const BYTES_PER_MB = 1_000_000

/** Bodies of up to so many bytes are small. */
const SMALL_BYTES = 64_000

/** Small bodies may fill so many times the limit, so that a few large or slow uploads never keep them out. */
const SMALL_ALLOWANCE = 1.125

/** Whoever reads the body of a request tells here what of it stays in memory. */
export interface Holder {
  /** So many bytes more. Throws `no_capacity` when those of all requests together would be too many. */
  hold(bytes: number): void
  /** So many bytes fewer; by default all that are still held. */
  release(bytes?: number): void
}

/**
 * The bytes of bodies in memory, over all requests that are not over. One that declares its length is counted with all of it
 * before it is read; one that does not, and one that is unpacked, as it grows. For an ordinary request two additions.
 */
export class Buffered {
  /** Held now. */
  bytes = 0
  readonly #limits: { readonly maxBufferedBytes: number }

  /** The limit is read each time. */
  constructor(limits: { readonly maxBufferedBytes: number }) {
    this.#limits = limits
  }

  /**
   * For a request that has `held` of them already. A body that is alone always fits, since it has a limit of its own.
   * Throws `no_capacity`, and then nothing was taken.
   */
  take(bytes: number, held: number): void {
    const total = this.bytes + bytes
    if (total > this.#limits.maxBufferedBytes && this.bytes > held && !this.#fitsAsSmall(held + bytes, total))
      throw this.#full()
    this.bytes = total
  }

  give(bytes: number): void {
    this.bytes -= bytes
  }

  #fitsAsSmall(size: number, total: number): boolean {
    return size <= SMALL_BYTES && total <= this.#limits.maxBufferedBytes * SMALL_ALLOWANCE
  }

  #full(): RouterError {
    const limit = Math.round(this.#limits.maxBufferedBytes / BYTES_PER_MB)
    const message = `The bodies of the requests in the router are near their limit of ${limit} MB, and this one does not fit.`
    return new RouterError('no_capacity', message, {
      hint: 'Send it again later, or raise server.max_buffered_mb in fleet.toml.',
    })
  }
}
