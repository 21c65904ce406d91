import { expect, test } from 'bun:test'
import type { Lane } from '../../../src/domain/job'
import { hasLane, isMediaLane } from '../../../src/domain/lanes'
import { NODE_KINDS, type NodeKind } from '../../../src/domain/node'

const having = (lane: Lane): readonly NodeKind[] => NODE_KINDS.filter((kind) => hasLane(kind, lane))

test.each([
  ['video', ['vllm', 'sdcpp', 'openai']],
  ['music', ['koboldcpp']],
  ['image', ['llamaswap', 'vllm', 'koboldcpp', 'sdcpp', 'a1111', 'openai']],
  ['transcription', ['llamaswap', 'llamacpp', 'vllm', 'koboldcpp', 'whispercpp', 'openai']],
  ['speech', ['llamaswap', 'vllm', 'koboldcpp', 'openai']],
] as const)('%s is for servers of these kinds: %p', (lane, expected) => {
  expect(having(lane)).toEqual([...expected])
  expect(isMediaLane(lane)).toBe(true)
})
