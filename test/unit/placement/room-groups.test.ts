import { expect, test } from 'bun:test'
import { createRoom } from '../../../src/placement/room'
import { testJob } from '../../support/host'

test('a request whose names look like those of another shares no group with it', () => {
  const room = createRoom()
  const chain = testJob({ id: 'chain', models: ['a', 'b'], arrivedAt: 2 })
  const forged = [
    testJob({ id: 'comma', models: ['a,b'], arrivedAt: 1 }),
    testJob({ id: 'quote', models: ['a","b'], arrivedAt: 1 }),
    testJob({ id: 'bar', models: ['a|'], pin: 'x', arrivedAt: 1 }),
    testJob({ id: 'pin', models: ['a'], pin: '|x', arrivedAt: 1 }),
  ]

  for (const job of forged) room.add({ job, attempt: 1, excluded: [] }, 'held', 'offline')

  expect(room.hasElder({ job: chain, excluded: [] })).toBe(false)

  room.add({ job: chain, attempt: 1, excluded: [] }, 'waiting', 'busy')
  expect(room.heads()).toHaveLength(forged.length + 1)
})

test('a request that could not reach a node stands in nobody else s way', () => {
  const room = createRoom()
  const elder = testJob({ id: 'elder', arrivedAt: 1 })
  const next = testJob({ id: 'next', arrivedAt: 2 })
  const since = (at: number) => [{ node: 'a', since: at }]

  room.add({ job: elder, attempt: 2, excluded: [], unreached: since(5) }, 'held', 'unreachable')

  expect(room.get('elder')?.unreached).toEqual(since(5))
  expect(room.hasElder({ job: next, excluded: [] })).toBe(false)
  expect(room.hasElder({ job: next, excluded: [], unreached: since(6) })).toBe(false)
  expect(room.hasElder({ job: next, excluded: [], unreached: since(5) })).toBe(true)
})
