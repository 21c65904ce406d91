import { expect, test } from 'bun:test'
import { createVideoBook, type Video } from '../../src/http/video-book'

const video = (id: string, status = 'queued'): Video => ({
  id,
  node: 'box',
  at: { id: 'v1', dialect: 'openai', model: 'm' },
  key: undefined,
  state: { status },
})

test('the book keeps the latest videos, and what became of them', () => {
  const book = createVideoBook(2)
  book.keep(video('one'))
  book.keep(video('two'))
  book.keep(video('two', 'completed'))
  book.keep(video('three'))

  expect(book.list().map(({ id }) => id)).toEqual(['three', 'two'])
  expect(book.get('two')?.state).toEqual({ status: 'completed' })
  expect(book.get('one')).toBeUndefined()

  book.forget('two')
  expect(book.list().map(({ id }) => id)).toEqual(['three'])
})
