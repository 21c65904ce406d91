import { expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host } from '../support/host'

const MINUTE = 60_000

/** Holds `big` in its 24 GB, with 5 GB left, and has a model of 12 GB that draws. */
const crowded = (): NodeReport => ({
  models: [
    { name: 'big', sizeGb: 19, capabilities: ['chat', 'completion'] },
    { name: 'draw', sizeGb: 12, capabilities: ['image'] },
  ],
  resident: [{ name: 'big', state: 'ready', memoryGb: 19 }],
  canLoad: true,
  canUnload: true,
  memoryGb: 24,
})
const textOnly = (): NodeReport => ({
  models: [{ name: 'big', sizeGb: 19, capabilities: ['chat', 'completion'] }],
  resident: [{ name: 'big', state: 'ready', memoryGb: 19 }],
  canLoad: true,
  canUnload: true,
  memoryGb: 24,
})

const describe = () => ({ kind: 'llamaswap' as const })
const picture = { asked: 'draw', models: ['draw'], needs: ['image'] } as const

const chatOnce = async (fleet: ReturnType<typeof host>): Promise<void> => {
  fleet.submit({ asked: 'big', models: ['big'], pin: 'a' })
  await fleet.clock.advance(0)
  const running = fleet.gateway.running.at(-1)
  running?.start()
  running?.finish()
  await fleet.clock.advance(0)
}

test('BL-M06 a picture never pushes out the last hot copy of a model with recent traffic: held, then 503 with the reason', async () => {
  const fleet = host({ a: crowded() }, { describe })
  await fleet.ready()
  await chatOnce(fleet)
  const { outcome } = fleet.submit(picture)
  await fleet.clock.advance(1_000)
  expect(fleet.of('request.placed').at(-1)?.verdicts).toMatchObject([{ node: 'a', reason: 'last_hot_copy' }])
  await chatOnce(fleet)
  expect(fleet.settled().map(({ outcome: { end } }) => end)).toEqual(['completed', 'completed'])
  await fleet.clock.advance(31_000)
  expect(await outcome).toMatchObject({ error: { code: 'no_capacity' } })
})

test('BL-M06 while the chat model answers, and while it has just been asked, nothing is loaded over it', async () => {
  const fleet = host({ a: crowded() }, { describe, policy: { use: 'residency', holdTimeoutMs: 30 * MINUTE } as never })
  await fleet.ready()
  fleet.submit({ asked: 'big', models: ['big'] })
  await fleet.clock.advance(0)
  fleet.submit(picture)
  await fleet.clock.advance(5_000)
  expect(fleet.gateway.loads).toHaveLength(0)
})

test('a copy elsewhere, or a long silence, lets the picture be drawn', async () => {
  const twice = host({ a: crowded(), b: textOnly() }, { describe })
  await twice.ready()
  await chatOnce(twice)
  twice.submit(picture)
  await twice.clock.advance(10)
  expect(twice.of('request.placed').at(-1)?.decision).toMatchObject({ kind: 'load', node: 'a', evicts: ['big'] })

  const quiet = host({ a: crowded() }, { describe })
  await quiet.ready()
  await chatOnce(quiet)
  await quiet.clock.advance(11 * MINUTE)
  quiet.submit(picture)
  await quiet.clock.advance(10)
  expect(quiet.of('request.placed').at(-1)?.decision).toMatchObject({ kind: 'load', node: 'a', evicts: ['big'] })
})
