import { expect, test } from 'bun:test'
import { createVideoBook, shown, type Video } from '../../src/http/video-book'
import type { KeptVideo, VideoStore } from '../../src/ports/videos'

const shelf = (...videos: readonly KeptVideo[]): VideoStore & { readonly kept: Map<string, KeptVideo> } => {
  const kept = new Map(videos.map((video) => [video.id, video]))
  return {
    kept,
    load: () => [...kept.values()],
    save: (video) => void kept.set(video.id, video),
    forget: (id) => void kept.delete(id),
  }
}

const video = (id: string, status = 'queued'): Video => ({
  id,
  begunAt: 1,
  node: 'box',
  at: { id: 'v1', dialect: 'openai', model: 'm' },
  state: { status },
})

test('the book keeps the latest videos, and what became of them', () => {
  const store = shelf()
  const book = createVideoBook(store, 2)
  book.keep(video('one'))
  book.keep(video('two'))
  book.keep(video('two', 'completed'))
  book.keep(video('three'))

  expect(book.list().map(({ id }) => id)).toEqual(['three', 'two'])
  expect(book.get('two')?.state).toEqual({ status: 'completed' })
  expect(book.get('one')).toBeUndefined()

  book.forget('two')
  expect(book.list().map(({ id }) => id)).toEqual(['three'])
  expect([...store.kept.keys()]).toEqual(['three'])
})

test('a video that is being made is not forgotten as long as there are others', () => {
  const book = createVideoBook(shelf(), 2)
  const stop = (): void => {}
  book.keep({ ...video('made'), stop })
  book.keep(video('done'))
  book.keep({ ...video('next'), stop })
  expect(book.list().map(({ id }) => id)).toEqual(['next', 'made'])

  book.keep(video('at once'))
  expect(book.list().map(({ id }) => id)).toEqual(['at once', 'next'])
})

test('a new book has what the one before it had, up to its limit, and the rest is taken off the shelf', () => {
  const store = shelf(video('one'), video('two', 'completed'), video('three'))
  const book = createVideoBook(store, 2)

  expect(book.list().map(({ id }) => id)).toEqual(['three', 'two'])
  expect([...store.kept.keys()]).toEqual(['two', 'three'])
})

test('of a video that was begun before the process was it says that its node is asked; of one that is over it does not', () => {
  const fault = { code: 'upstream_timeout', message: 'The video took longer than 9 s (limits.video_timeout).' }
  const book = createVideoBook(shelf(video('one'), video('two', 'completed'), { ...video('three'), fault }))
  const told = book.list().map(shown)

  expect(told[2]).toMatchObject({
    status: 'queued',
    fleet: { node: 'box', message: expect.stringContaining('restarted') },
  })
  expect(told[1]).toEqual({ id: 'two', status: 'completed' })
  expect(told[0]).toEqual({ id: 'three', status: 'failed', error: fault })
})

test('what a node says of a failure may quote the prompt, so it is told and not stored', () => {
  const store = shelf()
  const book = createVideoBook(store)
  const error = { code: 'moderation', message: 'no "a cat walks" here' }
  book.keep({ ...video('video_1'), state: { status: 'failed', error } })

  expect(book.get('video_1')?.state.error).toEqual(error)
  expect(JSON.stringify([...store.kept.values()])).not.toContain('cat')
  expect(shown(createVideoBook(store).get('video_1') as Video)).toMatchObject({
    status: 'failed',
    error: { code: 'failed', message: expect.stringContaining('req_1') },
  })
})

test('how to give a video up is not stored', () => {
  const store = shelf()
  createVideoBook(store).keep({ ...video('one'), stop: () => {} })
  expect(store.kept.get('one')).toEqual(video('one'))
})
