/** The protocols a client may speak to us. One file in `wire/` each. */
export type DialectName = 'openai' | 'ollama' | 'anthropic' | 'native'

/** What a request needs from a model; a node that is known to lack one is eliminated. */
export type Capability = 'chat' | 'completion' | 'embedding' | 'vision' | 'tools' | 'thinking' | 'insert' | 'audio'

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
  /** The chain to try, in order; the first entry is `asked` unless an alias replaced it. Compared by `modelKey`. */
  readonly models: readonly string[]
  readonly stream: boolean
  readonly needs: readonly Capability[]
  readonly priority: Priority
  readonly promptTokens: TokenCount
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
  readonly clientRequestId?: string
  /** A line that changes with every request was taken out of the prompt, so that engines can reuse what they cached. */
  readonly billingHeaderRemoved?: true
  /** Milliseconds since the epoch at which the answer becomes worthless. */
  readonly deadlineAt?: number
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number
}

/** The form under which model names are compared: case and a `:latest` tag do not make another model. */
export const modelKey = (name: string): string => {
  const key = name.trim().toLowerCase()
  return key.endsWith(':latest') ? key.slice(0, -':latest'.length) : key
}

export const sameModel = (a: string, b: string): boolean => a === b || modelKey(a) === modelKey(b)
