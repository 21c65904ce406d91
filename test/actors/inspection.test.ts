import { expect, test } from 'bun:test'
import type { InspectionEvent } from 'xstate'
import { isInspected } from '../../actors/spawn'
import { host, resident, testJob } from '../support/host'

test('nothing is made for inspectors until one comes, and nothing after it left', async () => {
  const { fleet, gateway, clock } = host({ a: resident('m', 4) })
  await clock.advance(10)
  const { system } = fleet.root
  const seen: InspectionEvent['type'][] = []
  const request = (): void => {
    void fleet.submit(testJob(), new AbortController().signal)
    for (const running of [...gateway.running]) running.finish()
  }

  expect(isInspected(system)).toBe(false)
  const watching = system.inspect(({ type }) => void seen.push(type))
  expect(isInspected(system)).toBe(true)
  request()
  expect(new Set(seen)).toEqual(new Set(['@xstate.actor', '@xstate.event', '@xstate.microstep', '@xstate.snapshot']))

  watching.unsubscribe()
  watching.unsubscribe()
  expect(isInspected(system)).toBe(false)
  const before = seen.length
  request()
  expect(seen).toHaveLength(before)
})
