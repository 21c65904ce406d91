import type { FaultPlan } from './faults'
import type { FakeModel, LogEvent } from './options'
import type { Wheel } from './wheel'

/** What one answer took, in simulated ms. */
export interface Stats {
  readonly promptTokens: number
  readonly tokens: number
  readonly loadMs: number
  readonly promptMs: number
  readonly decodeMs: number
  readonly totalMs: number
}

/** One request as the engine works on it. */
export interface Work {
  readonly model: FakeModel
  /** The window the model must have; absent: whatever it has. */
  readonly contextTokens?: number
  /** Negative: for ever; 0: leave memory when idle. */
  readonly keepAliveMs?: number
  readonly promptTokens: number
  /** 0: only load. */
  readonly tokens: number
  event(event: LogEvent): void
  /** Tokens `from` up to `to` (exclusive) are there. False: wait until `resume`. */
  produced(from: number, to: number): boolean
  done(stats: Stats): void
  failed(message: string): void
  /** An eviction killed it. */
  cut(): void
}

export interface Job {
  readonly work: Work
  readonly since: number
  phase: 'loading' | 'queued' | 'prompt' | 'decode' | 'over'
  /** Tokens of this phase that are still to do. */
  left: number
  produced: number
  /** The client does not take what is there. */
  blocked: boolean
  /** The client left, the engine has not noticed. */
  abandoned: boolean
  /** Simulated ms spent on each part. */
  loadMs: number
  promptMs: number
  decodeMs: number
}

/** A model in memory. */
export interface Resident {
  readonly model: FakeModel
  readonly contextTokens: number
  readonly memoryGb: number
  state: 'loading' | 'ready'
  lastUsedAt: number
  /** Simulated ms of the wheel. */
  expiresAt: number
  keepAliveMs: number
  leaving: boolean
  /** Calls the pending expiry off. */
  stay?: () => void
  readonly waiting: Job[]
  readonly running: Set<Job>
}

export interface Handle {
  cancel(): void
  resume(): void
}

export interface MemoryLimits {
  readonly memoryGb: number
  readonly maxResident: number
  readonly slots: number
}

export interface EngineOptions extends MemoryLimits {
  readonly collapseAbove: number
  readonly contention: number
  readonly loadGbPerSecond: number
  readonly keepAliveMs: number
  readonly faults: FaultPlan
  readonly wheel: Wheel
  readonly random: () => number
}
