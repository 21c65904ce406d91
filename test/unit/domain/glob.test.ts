import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { globKey, isMoreSpecific, matchesGlob } from '../../../src/domain/glob'
import { startWatch } from '../../support/stopwatch'

test.each([
  ['claude-*', 'claude-sonnet-4', true],
  ['claude-*', 'claude-', true],
  ['claude-*', 'claude', false],
  ['*', '', true],
  ['*', 'hf.co/org/Repo:Q4', true],
  ['*:120b', 'gpt-oss:120b', true],
  ['*:120b', 'gpt-oss:120b-cloud', false],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'acb', false],
  ['gpt-4.1', 'gpt-4x1', false],
  ['[a]*', '[a]b', true],
  ['exact', 'exact', true],
  ['exact', 'exactly', false],
  ['', '', true],
  ['', 'a', false],
])('%s covers %s: %p', (pattern, text, covers) => {
  expect(matchesGlob(pattern, text)).toBe(covers)
})

test('any text with stars put into it, or for parts of it, covers the text', () => {
  const parts = fc.array(fc.tuple(fc.string(), fc.boolean()), { minLength: 1, maxLength: 8 })

  fc.assert(
    fc.property(parts, (given) => {
      const plain = given.map(([part, isStar]) => [part.replaceAll('*', ''), isStar] as const)
      const text = plain.map(([part]) => part).join('')
      const pattern = plain.map(([part, isStar]) => (isStar ? '*' : part)).join('')
      expect(matchesGlob(pattern, text)).toBe(true)
    }),
  )
})

test('many stars cost no more than pattern times text', () => {
  const taken = startWatch()

  expect(matchesGlob(`${'a*'.repeat(60)}b`, 'a'.repeat(5_000))).toBe(false)
  expect(taken()).toBeLessThan(200)
})

describe('of two patterns', () => {
  test.each([
    ['claude-opus-*', 'claude-*'],
    ['claude-*', '*'],
    ['claude-opus-*', 'claude-*-latest'],
    ['claude-*-v1', 'claude-*'],
    ['a*', '*a*'],
    ['*:120b', '*b'],
  ])('%s says more than %s', (more, less) => {
    expect(isMoreSpecific(more, less)).toBe(true)
    expect(isMoreSpecific(less, more)).toBe(false)
  })

  test('stars in a row and case make no difference', () => {
    expect(globKey('GPT-**')).toBe(globKey('gpt-*'))
  })
})
