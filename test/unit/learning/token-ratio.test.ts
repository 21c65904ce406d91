import { expect, test } from 'bun:test'
import { bytesPerTokenOf, withPrompt, withTokenRatio } from '../../../src/learning/token-ratio'
import { testJob } from '../../support/host'

test('bytes per token come from what engines counted, long prompts weighing more', () => {
  const first = withPrompt(undefined, 'm', 3_000, 1_000)
  const second = withPrompt(first, 'm', 500, 100)

  expect(bytesPerTokenOf(first)).toBe(3)
  expect(bytesPerTokenOf(second)).toBeCloseTo((3_000 * 0.8 + 500 * 0.2) / (1_000 * 0.8 + 100 * 0.2), 9)
  expect(second?.samples).toBe(2)
})

test.each([
  ['a short prompt is mostly template', 150, 60],
  ['the engine counted only what it had not cached', 40_000, 12],
  ['more tokens than bytes', 1_000, 1_200],
  ['no count', 1_000, 0],
])('%s: nothing is learned', (_what, bytes, tokens) => {
  expect(withPrompt(undefined, 'm', bytes, tokens)).toBeUndefined()
})

test('a prompt is estimated by the measured ratio, its pictures as before', () => {
  const promptTokens = { value: 1_000 + 768, basis: 'estimated' as const }
  const job = testJob({ promptBytes: 4_000, promptTokens })

  expect(withTokenRatio(job, 2.5).promptTokens).toEqual({ value: 1_600 + 768, basis: 'estimated' })
  expect(withTokenRatio(job, undefined)).toBe(job)
})

test('a count and a prompt of unknown length stay', () => {
  const counted = testJob({ promptBytes: 4_000, promptTokens: { value: 900, basis: 'counted' } })
  const bare = testJob()

  expect(withTokenRatio(counted, 2)).toBe(counted)
  expect(withTokenRatio(bare, 2)).toBe(bare)
})
