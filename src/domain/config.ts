import type { Priority } from './job'
import type { NodeDescription } from './node'
import type { PolicyName } from './policies'
import type { CostConfig, ScoreConfig } from './score'

export type Scope = 'inference' | 'metrics' | 'admin' | 'node'

/** A caller's key: only its SHA-256 is kept. */
export interface KeyConfig {
  readonly name: string
  /** Lower-case hex of the SHA-256 of the key. */
  readonly sha256: string
  readonly scopes: readonly Scope[]
  /** Globs of the models that it may use, `!` excludes; absent: all. */
  readonly models?: readonly string[]
  /** The highest that a caller may ask for; absent: any. */
  readonly priority?: Priority
  /** How nodes are chosen for it, where a request does not say; absent: as for everybody. */
  readonly policy?: PolicyName
  readonly limits?: { readonly requestsPerMinute?: number; readonly concurrent?: number }
}

/** A name that clients may ask for; with `*` in it, many. */
export interface AliasConfig {
  readonly name: string
  /** Models or further aliases, tried in this order. */
  readonly models: readonly string[]
  /** A stand-in need only be able to do what the request needs, not all that the first one can. */
  readonly acrossKinds: boolean
}

/** One checkpoint that nodes list under several names. */
export interface SameModelConfig {
  /** What the fleet calls it. */
  readonly id: string
  readonly names: readonly string[]
}

/** `[priorities]`: who goes first, and what batch work may take. */
export interface PriorityConfig {
  /** Of a request that does not say. */
  readonly default: Priority
  /** First to last. */
  readonly order: readonly Priority[]
  /** Critical requests may use queues that are so many times longer than they may be for others. */
  readonly criticalQueueAllowance: number
  /** Share of a node's slots that batch work may take, 0 to 1. */
  readonly batchMaxShare: number
  /** Batch work that has waited for so long counts as normal. */
  readonly batchMaxWaitMs: number
}

export const DEFAULT_PRIORITIES: PriorityConfig = {
  default: 'normal',
  order: ['critical', 'normal', 'batch'],
  criticalQueueAllowance: 2,
  batchMaxShare: 0.5,
  batchMaxWaitMs: 1_800_000,
}

/** The effective configuration, frozen. Times in ms; sizes say their unit. Parsing lives in `config/`. */
export interface Config {
  readonly server: {
    readonly host: string
    readonly port: number
    readonly maxBodyBytes: number
    /** Of the bodies of all requests together; at least `maxBodyBytes`. */
    readonly maxBufferedBytes: number
    readonly shutdownGraceMs: number
    /** A client of an event stream that waits longer gets its headers and comments meanwhile; 0: it just waits. */
    readonly holdHeadersMs: number
    /** Whether those comments say what is being waited for. */
    readonly loadingNotes: 'off' | 'comment'
    /** Takes the line out of Claude Code's prompts that changes with every request. */
    readonly stripBillingHeader: boolean
    /** Repairs broken arguments of calls of tools, where the tool's schema accepts the result. */
    readonly repairToolCalls: boolean
  }
  readonly auth: { readonly mode: 'open' | 'keys'; readonly keys: readonly KeyConfig[] }
  readonly discovery: { readonly local: boolean; readonly everyMs: number }
  readonly nodes: readonly NodeDescription[]
  readonly aliases?: readonly AliasConfig[]
  readonly sameModel?: readonly SameModelConfig[]
  readonly policy: {
    readonly use: string
    readonly holdTimeoutMs: number
    readonly rescoreEveryMs: number
    /** What is in memory goes before another model for at least so long, where both are wanted. */
    readonly swapAfterMs: number
    /** Further attempts after the first, each on another node, only before the first byte; not those that reached no engine. */
    readonly retries: number
  }
  readonly priorities: PriorityConfig
  readonly limits: {
    readonly concurrent?: number
    /** Of each key that has no limit of its own. */
    readonly requestsPerMinute?: number
    readonly waitingTotal: number
    readonly waitingPerModel: number
    readonly queuePerNode: number
    readonly connectTimeoutMs: number
    readonly loadTimeoutMinMs: number
    readonly firstTokenTimeoutMs: number
    readonly streamIdleTimeoutMs: number
    /** From sending to the last byte; absent: an answer may take as long as it flows. */
    readonly totalTimeoutMs?: number
    /** The same of a video, whose node tells how it stands for as long as it likes. */
    readonly videoTimeoutMs: number
    /** An idle connection to a node is not reused after this. */
    readonly connectionIdleMs: number
  }
  readonly health: {
    /** Between polls of a node that answers. */
    readonly pollEveryMs: number
    readonly pollTimeoutMs: number
    /** Failed polls in a row until `offline`; the first makes it `suspect`. */
    readonly offlineAfter: number
    readonly breakerFailures: number
    readonly breakerWindowMs: number
    readonly breakerRetryMs: number
    readonly breakerRetryMaxMs: number
    /** Requests that stand without a first byte for longer than this make the node suspect. */
    readonly stallAfterMs: number
    readonly stallRequests: number
  }
  readonly state: {
    readonly backend: 'memory' | 'sqlite'
    /** Directory; empty means the platform's usual place. */
    readonly path: string
    readonly keepTracesMs: number
  }
  readonly score?: ScoreConfig
  readonly cost?: CostConfig
  readonly metrics: { readonly enabled: boolean; readonly maxModels: number; readonly perKey: boolean }
  readonly log: { readonly level: string; readonly format: 'auto' | 'pretty' | 'json' }
}
