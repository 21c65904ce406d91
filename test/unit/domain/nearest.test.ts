import { describe, expect, test } from 'bun:test'
import { editDistance, nearest } from '../../../src/domain/nearest'

describe('the nearest word', () => {
  test.each([
    ['', 'abc', 3],
    ['same', 'same', 0],
    ['olama', 'ollama', 1],
    ['lisetn', 'listen', 1],
    ['kitten', 'sitting', 3],
  ])('%s and %s are %i edits apart', (a, b, edits) => {
    expect(editDistance(a, b)).toBe(edits)
    expect(editDistance(b, a)).toBe(edits)
  })

  test('is suggested when near, the nearest first', () => {
    expect(nearest('max_concurency', ['max_concurrency', 'models'])).toBe('max_concurrency')
    expect(nearest('LISTEN', ['listen'])).toBe('listen')
    expect(nearest('tag', ['tags', 'log'])).toBe('tags')
  })

  test('is not suggested when it is another word', () => {
    expect(nearest('ui', ['log', 'auth'])).toBeUndefined()
    expect(nearest('lmstudio', ['ollama', 'openai'])).toBeUndefined()
  })
})
