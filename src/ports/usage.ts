import type { KeyConfig } from '../domain/config'

/** What one key used on one day. */
export interface KeyUsage {
  readonly key: string
  /** UTC, `2026-01-31`. */
  readonly day: string
  /** Requests that ended, however they did. */
  readonly requests: number
  readonly tokensIn: number
  readonly tokensOut: number
  /** Seconds for which its requests kept nodes at work. */
  readonly engineSeconds: number
}

export interface UsageBook {
  /** The days of a key, newest first. */
  of(key: string): readonly KeyUsage[]
}

/** What a key may do and what it did; never the key, nor its hash. */
export type KeyView = Omit<KeyConfig, 'sha256'> & {
  /** Requests of it that are in the router now. */
  readonly running: number
  /** A row a day, newest first. */
  readonly usage: readonly KeyUsage[]
}
