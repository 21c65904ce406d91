/** The protocols a client may speak to us. One file in `wire/` each. */
export type DialectName = 'openai' | 'ollama' | 'anthropic' | 'native'

/** What a request may need from a model; a node that is known to lack one is eliminated. */
export const CAPABILITIES = [
  'chat',
  'completion',
  'embedding',
  'vision',
  'tools',
  'thinking',
  'insert',
  'audio',
  'rerank',
  'transcription',
  'speech',
  'music',
  'image',
  'video',
] as const
export type Capability = (typeof CAPABILITIES)[number]

/** What a server is there for. A node whose one lane is down still serves its others. */
export type Lane =
  | 'text'
  | 'embedding'
  | 'multimodal'
  | 'rerank'
  | 'transcription'
  | 'speech'
  | 'music'
  | 'image'
  | 'video'

export type Priority = 'critical' | 'normal' | 'batch'

export interface TokenCount {
  readonly value: number
  readonly basis: 'estimated' | 'counted'
}

/** The immutable description of what a client asked for. Plain data: no body, no socket, no secret. */
export interface Job {
  /** Ours, `req_…`. */
  readonly id: string
  readonly dialect: DialectName
  /** The endpoint in the client's own terms, for the record: `openai.chat`, `ollama.generate`, … */
  readonly operation: string
  /** The model exactly as the client wrote it. */
  readonly asked: string
  /** The chain to try, in order, by the fleet's names; until it is submitted only `asked`. Compared by `modelKey`. */
  readonly models: readonly string[]
  /** Models that the client names as stand-ins, after the chain (`X-Fleet-Fallback`). */
  readonly fallback?: readonly string[]
  readonly stream: boolean
  readonly needs: readonly Capability[]
  /** No model is named: any will do that is known to have what is needed, the one that is soonest free. */
  readonly anyModel?: true
  /** What a model other than the first of the chain must be able to do as well, where the alias says so. */
  readonly standInNeeds?: readonly Capability[]
  readonly priority: Priority
  readonly promptTokens: TokenCount
  /** Bytes of the prompt's text and tools, which the estimate is made from. */
  readonly promptBytes?: number
  /** The most tokens of answer that the client allows, if it says so. */
  readonly maxOutputTokens?: number
  /** The context window the client insists on (Ollama's `num_ctx`), if any. */
  readonly contextTokens?: number
  /** Only this node, or a tag written `#tag` (`X-Fleet-Node`). */
  readonly pin?: string
  readonly session?: string
  readonly tags: readonly string[]
  /** Name of the key that the caller used; never the key. */
  readonly key?: string
  /** How its node is chosen, where that is not as for everybody. */
  readonly policy?: string
  readonly clientRequestId?: string
  /** A line that changes with every request was taken out of the prompt, so that engines can reuse what they cached. */
  readonly billingHeaderRemoved?: true
  /** Milliseconds since the epoch at which the answer becomes worthless. */
  readonly deadlineAt?: number
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number
}

/** Keys that were made already: a request asks for that of its model some twenty times. */
const keys = new Map<string, string>()
const MOST_KEYS = 4_096
/** Characters; nobody asks for a longer name twice. */
const LONGEST_KEPT = 256

/** The form under which model names are compared: case and a `:latest` tag do not make another model. */
export const modelKey = (name: string): string => {
  const known = keys.get(name)
  if (known !== undefined) return known
  const lower = name.trim().toLowerCase()
  const key = lower.endsWith(':latest') ? lower.slice(0, -':latest'.length) : lower
  // Clients may ask for anything: when there are too many the memory is simply emptied.
  if (name.length > LONGEST_KEPT) return key
  if (keys.size >= MOST_KEYS) keys.clear()
  keys.set(name, key)
  return key
}

export const sameModel = (a: string, b: string): boolean => a === b || modelKey(a) === modelKey(b)
