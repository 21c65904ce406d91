import type { NodeDescription } from './node'
import type { CostConfig, ScoreConfig } from './score'

export type Scope = 'inference' | 'metrics' | 'admin' | 'node'

/** A caller's key: only its SHA-256 is kept. */
export interface KeyConfig {
  readonly name: string
  /** Lower-case hex of the SHA-256 of the key. */
  readonly sha256: string
  readonly scopes: readonly Scope[]
}

/** A fake node of `fleet serve --demo`; times in ms, sizes in GB, rates in tokens/s. */
export interface DemoModel {
  readonly name: string
  readonly sizeGb: number
  readonly prefillPerSecond: number
  readonly decodePerSecond: number
}

/** The effective configuration, frozen. Times in ms; sizes say their unit. Parsing lives in `config/`. */
export interface Config {
  readonly server: {
    readonly host: string
    readonly port: number
    readonly maxBodyBytes: number
    readonly shutdownGraceMs: number
    /** Takes the line out of Claude Code's prompts that changes with every request. */
    readonly stripBillingHeader: boolean
  }
  readonly auth: { readonly mode: 'open' | 'keys'; readonly keys: readonly KeyConfig[] }
  readonly discovery: { readonly local: boolean; readonly everyMs: number }
  readonly nodes: readonly NodeDescription[]
  readonly policy: {
    readonly use: string
    readonly holdTimeoutMs: number
    readonly rescoreEveryMs: number
    /** Further attempts after the first, each on another node, only before the first byte. */
    readonly retries: number
  }
  readonly limits: {
    readonly concurrent?: number
    readonly waitingTotal: number
    readonly waitingPerModel: number
    readonly queuePerNode: number
    readonly connectTimeoutMs: number
    readonly loadTimeoutMinMs: number
    readonly firstTokenTimeoutMs: number
    readonly streamIdleTimeoutMs: number
    /** From sending to the last byte; absent: an answer may take as long as it flows. */
    readonly totalTimeoutMs?: number
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
  readonly metrics: { readonly enabled: boolean; readonly maxModels: number }
  readonly log: { readonly level: string; readonly format: 'auto' | 'pretty' | 'json' }
}
