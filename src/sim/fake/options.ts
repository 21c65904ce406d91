import type { Capability } from '../../domain/job'
import type { FaultPlan } from './faults'

export type FakeKind =
  | 'ollama'
  | 'lmstudio'
  | 'lmstudio-v0'
  | 'llamaswap'
  | 'llamacpp'
  | 'llamacpp-router'
  | 'vllm'
  | 'openai'

/** A model of a fake engine. Sizes in GB (10^9 bytes), rates in tokens/s, times in simulated ms. */
export interface FakeModel {
  readonly name: string
  /** Hash of the weights, where the engine tells one; default: that of the name. */
  readonly digest?: string
  readonly sizeGb: number
  /** The architecture's maximum window. */
  readonly contextTokens: number
  /** The window it gets when nobody asks for one; default: `contextTokens`. */
  readonly defaultContextTokens?: number
  /** Default: chat, completion, tools. */
  readonly capabilities?: readonly Capability[]
  readonly prefillPerSecond: number
  readonly decodePerSecond: number
  /** Default: size / `loadGbPerSecond` of the engine. */
  readonly loadMs?: number
  /** Memory of the KV cache for each 1 000 tokens of window and slot; default 0. */
  readonly kvGbPerThousandTokens?: number
}

export interface FakeOptions {
  readonly kind: FakeKind
  readonly name?: string
  readonly models: readonly FakeModel[]
  /** Memory for models in GB; default: unlimited. */
  readonly memoryGb?: number
  /** Models in memory at once; default: unlimited, 4 for the llama.cpp router, 1 for llama-swap. */
  readonly maxResident?: number
  /** Requests that run at once per model, more wait inside in order. Default: 1 for Ollama, 4 else. */
  readonly slots?: number
  /** Above so many running requests each gets a random 0.2 to 0.6 of its speed. */
  readonly collapseAbove?: number
  /** How much running requests slow each other: 0 (perfect batching, default) to 1 (time slicing). */
  readonly contention?: number
  /** In memory at start. Default: none for loaders, the first model of `llamacpp`, all of `openai` and `vllm`. */
  readonly resident?: readonly string[]
  /** Default 2. */
  readonly loadGbPerSecond?: number
  /** Length of an answer in tokens, or bounds between which the prompt decides. Default 16. */
  readonly answerTokens?: number | readonly [min: number, max: number]
  /** Replaces the numbered words as answer; split into words, each counts as a token. */
  readonly answer?: (prompt: string, model: string) => string
  readonly seed?: number
  /** Simulated ms that pass in one real ms; default 1. Faults use real ms. */
  readonly timeScale?: number
  readonly version?: string
  /** Asked for as a bearer token. */
  readonly apiKey?: string
  /** Default 0: any free port of the loopback interface. */
  readonly port?: number
  /** How long an idle model stays (Ollama), in simulated ms; default 5 minutes. */
  readonly keepAliveMs?: number
  /** Keeps `log`; default true. Off, nothing of a request outlives it. */
  readonly keepLog?: boolean
}

export type LogEvent =
  | 'received'
  | 'swallowed'
  | 'frozen'
  | 'loading'
  | 'queued'
  | 'started'
  | 'first_token'
  | 'finished'
  | 'failed'
  | 'cancelled'
  | 'interrupted'
  | 'client_closed'

/** One request as the engine saw it. `at` in ms since the epoch. */
export interface LoggedRequest {
  readonly at: number
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed JSON, else the text; undefined when there was none. */
  readonly body: unknown
  readonly events: { readonly at: number; readonly event: LogEvent }[]
}

export interface FakeLoad {
  readonly at: number
  readonly model: string
  readonly contextTokens: number
  readonly evicted: readonly string[]
}

/** A running fake engine. */
export interface FakeNode {
  readonly kind: FakeKind
  readonly name: string
  /** Server root without a trailing slash. */
  readonly url: string
  readonly port: number
  readonly log: LoggedRequest[]
  readonly loads: readonly FakeLoad[]
  readonly faults: FaultPlan
  readonly sockets: { readonly opened: number; readonly closed: number }
  /** Requests that hold a slot. */
  running(model?: string): number
  /** The most that ever held a slot at once, in the engine or of one model. */
  peak(model?: string): number
  /** Names of the models in memory, still loading ones excluded. */
  resident(): string[]
  /** Answers that an eviction cut. */
  interrupted(): number
  /** Loads a model as if somebody else had asked for it; resolves when it is in memory. */
  load(model: string): Promise<void>
  stop(): Promise<void>
}
