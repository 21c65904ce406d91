import { expect, test } from 'bun:test'
import type { NodeKind } from '../../../src/domain/node'
import { adapterFor } from '../../../src/nodes'
import { nativeDialects } from '../../../src/nodes/native'

test.each([
  ['llamacpp', 'b9000-1a2b3c', ['openai', 'anthropic']],
  ['llamacpp', 'b8000-1a2b3c', ['openai', 'anthropic']],
  ['llamacpp', 'b7999-1a2b3c', ['openai']],
  ['llamacpp', 'b0-unknown', ['openai']],
  ['llamacpp', 'v1.2', ['openai']],
  ['llamacpp', undefined, ['openai']],
  ['ollama', '0.33.0', ['ollama']],
  ['vllm', '0.32.0', ['openai']],
  ['lmstudio', '0.4.12', ['openai']],
  ['llamaswap', '250', ['openai']],
  ['openai', '1.0.0', ['openai']],
] as const satisfies readonly (readonly [NodeKind, string | undefined, readonly string[]])[])(
  '%s %s is spoken to in %p',
  (kind, version, dialects) => {
    expect(nativeDialects(adapterFor(kind), version)).toEqual([...dialects])
  },
)
