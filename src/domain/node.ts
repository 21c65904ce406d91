import type { Capability, Lane } from './job'

/** Kinds of server that can be a node. */
export const NODE_KINDS = [
  'ollama',
  'lmstudio',
  'llamaswap',
  'llamacpp',
  'vllm',
  'sglang',
  'koboldcpp',
  'mlx',
  'whispercpp',
  'sdcpp',
  'a1111',
  'openai',
] as const
export type NodeKind = (typeof NODE_KINDS)[number]

/** Where and how a node is reached, from the configuration or from discovery. Plain data; the key stays in `key`. */
export interface NodeDescription {
  readonly name: string
  readonly kind: NodeKind
  /** Server root without a trailing slash and without `/v1`. */
  readonly url: string
  /** Server root that is asked what the node holds and told to load, where that is not `url`. Requests go to `url`. */
  readonly residencyUrl?: string
  readonly origin: 'configured' | 'discovered' | 'demo'
  /** Memory for models in GB (10^9 bytes) where the node does not report it. */
  readonly memoryGb?: number
  readonly bandwidthGBps?: number
  /** At most so many requests at once on the node, whatever the model. */
  readonly maxConcurrency?: number
  readonly roles?: readonly Capability[]
  /** The models it may serve; absent means whatever it reports. */
  readonly models?: readonly string[]
  readonly tags: readonly string[]
  readonly keepAlive?: string
  /** The context window to load models with, in tokens. */
  readonly contextTokens?: number
  readonly distance: number
  /** Credential for the node itself (sent as a bearer token). Never logged, never shown. */
  readonly key?: string
}

/** A model the node could serve. Sizes in GB (10^9 bytes). */
export interface StoredModel {
  readonly name: string
  /** The node's own name for it, where the fleet calls it otherwise. */
  readonly localName?: string
  /** The configuration says that it is the same model as others under other names (`same_model`). */
  readonly isDeclared?: true
  readonly aliases?: readonly string[]
  readonly sizeGb?: number
  readonly digest?: string
  /** The architecture's maximum, in tokens. */
  readonly maxContextTokens?: number
  /** Absent means unknown, which eliminates nothing. */
  readonly capabilities?: readonly Capability[]
  readonly details?: Readonly<Record<string, unknown>>
  readonly modifiedAt?: string
}

/** A model in the node's memory. */
export interface ResidentModel {
  readonly name: string
  readonly state: 'loading' | 'ready'
  readonly memoryGb?: number
  readonly vramGb?: number
  /** The window it was loaded with, per slot, in tokens. */
  readonly contextTokens?: number
  /** Milliseconds since the epoch; in the past means it is not to be trusted as resident. */
  readonly expiresAt?: number
  /** Requests it can run at once, where the engine tells. */
  readonly slots?: number
  /** Requests it runs now (ours and others'), where the engine tells. */
  readonly running?: number
  /** Share of its KV cache in use, 0 to 1, where the engine tells. */
  readonly kvUsage?: number
}

export type Pressure = 'normal' | 'warn' | 'critical'

/** What one poll learned. Adapters produce it; nothing in it is guessed. */
export interface NodeReport {
  readonly version?: string
  readonly models: readonly StoredModel[]
  readonly resident: readonly ResidentModel[]
  /** The engine has a call that loads a model without answering a request. */
  readonly canLoad: boolean
  /** The engine has a call that unloads one model. */
  readonly canUnload: boolean
  /** A request for a model that is not in memory makes the engine load it, and push out what is in its way. */
  readonly loadsOnRequest?: boolean
  /** Models the engine keeps in memory at once, where it tells; a further load evicts one. */
  readonly maxResident?: number
  /** Total memory for models in GB, where the engine tells. */
  readonly memoryGb?: number
  readonly freeGb?: number
  readonly pressure?: Pressure
  /** What it is there for and cannot do now, while its other lanes work. */
  readonly lanesDown?: readonly Lane[]
}

export type Health = 'unknown' | 'online' | 'suspect' | 'offline'
export type Admission = 'open' | 'paused' | 'draining'
export type Breaker = 'closed' | 'open' | 'half_open'
