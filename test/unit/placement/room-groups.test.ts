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

  for (const job of forged) room.add(job, 1, [], 'held', 'offline')

  expect(room.hasElder(chain, [])).toBe(false)

  room.add(chain, 1, [], 'waiting', 'busy')
  expect(room.heads()).toHaveLength(forged.length + 1)
})
