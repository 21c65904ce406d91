import { expect, test } from 'bun:test'
import { createWatch } from '../../../src/learning/watch'

const watching = () => {
  const watch = createWatch((node, model) => `${node} ${model}`, 10)
  const send = (request: string, at: number, node = 'a', streams = true) =>
    watch.sent({ request, node, model: 'm', at, streams })
  return { watch, send }
}

test('a request that is sent again is at the new place only', () => {
  const { watch, send } = watching()
  send('r', 0, 'a', false)
  send('r', 10, 'b')
  send('s', 20, 'a')
  watch.firstByte('s', 30)

  expect(watch.ended('s', 40)).toEqual({ waitedMs: 0, concurrency: 1 })
  expect(watch.of('a', 'm')?.overlapping).toBe(0)
})

test('whoever ends leaves the others where they are', () => {
  const { watch, send } = watching()
  for (const request of ['r', 's', 't']) send(request, 0)
  for (const request of ['r', 's', 't']) watch.firstByte(request, 10)
  watch.ended('r', 20)
  watch.ended('t', 30)

  expect(watch.ended('s', 40)).toEqual({ waitedMs: 0, concurrency: 2 })
  expect(watch.ended('s', 50)).toBeUndefined()
})
