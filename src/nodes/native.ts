import type { NodeKind } from '../domain/node'
import type { NodeDialect } from '../wire/exchange'
import type { NodeAdapter } from './adapter'

interface Later {
  readonly dialect: NodeDialect
  /** Reads the number that decides out of the version as the node reports it. */
  readonly version: RegExp
  /** The smallest such number with which the dialect was seen to be right. */
  readonly since: number
}

/**
 * Dialects that a kind speaks correctly from a version on, beside those that its adapter always names. A node that tells
 * no version, or one that cannot be read, is translated for, which is never wrong.
 *
 * Not here, though they have the endpoint: Ollama's `/v1/messages` knows no `tool_choice`, guesses the tokens of the prompt
 * and sets no context window; LM Studio and llama-swap do not tell a version by which to know it; vLLM's lost reasoning
 * in early versions, and nobody here has seen it right. Every engine's Responses endpoint deviates.
 */
const later: Partial<Readonly<Record<NodeKind, readonly Later[]>>> = {
  // The endpoint came with b7187; from here on it also tells reasoning and cached tokens.
  llamacpp: [{ dialect: 'anthropic', version: /^b(\d+)/, since: 8_000 }],
}

/** The dialects in which a node of this kind and version may be spoken to. */
export const nativeDialects = ({ kind, native }: NodeAdapter, version: string | undefined): readonly NodeDialect[] => {
  const added = (later[kind] ?? []).filter((entry) => Number(entry.version.exec(version ?? '')?.[1]) >= entry.since)
  return added.length === 0 ? native : [...native, ...added.map(({ dialect }) => dialect)]
}
