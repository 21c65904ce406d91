import { expect, test } from 'bun:test'
import { host, resident } from '../support/host'

test.each([
  ['as told', 0],
  ['a little behind its timers, as after a step back', 5],
])('the slot of a client that left is free again where the clock is %s', async (_how, behindMs) => {
  const { clock, gateway, ready, submit, fleet } = host({ rig: resident('m', 1) })
  await ready()
  const gone = submit()
  gateway.running[0]?.start()
  gone.leave()
  await clock.advance(1)
  expect(fleet.shared.desk.ledger.on('rig').map(({ state }) => state)).toEqual(['lingering'])

  const now = clock.now.bind(clock)
  clock.now = () => now() - behindMs
  await clock.advance(2_000)

  expect(fleet.shared.desk.ledger.on('rig')).toEqual([])
})
