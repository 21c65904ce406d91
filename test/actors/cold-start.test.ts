import { expect, test } from 'bun:test'
import type { NodeReport } from '../../src/domain/node'
import { host, noSamples } from '../support/host'

/** An engine that tells what it holds and loads only by a request. */
const jit = (...resident: string[]): NodeReport => ({
  models: [{ name: 'm' }, { name: 'other' }],
  resident: resident.map((name) => ({ name, state: 'ready' })),
  canLoad: false,
  canUnload: false,
  loadsOnRequest: true,
})

const describe = () => ({ kind: 'lmstudio', maxConcurrency: 4 }) as const

test('a request that makes the engine load has the time of a load before its first byte is missed', async () => {
  const { clock, gateway, ready, submit, settled, fleet, of, expectIdle } = host(
    { a: jit() },
    { describe, policy: { retries: 0 } },
  )
  await ready()

  const { outcome } = submit()
  await clock.advance(0)
  expect(of('request.placed')).toMatchObject([{ decision: { kind: 'start', node: 'a', reason: 'cold_load' } }])
  expect(gateway.loads).toEqual([])
  // stall_after 1 min and first_token_timeout 10 min, each after load_timeout_min 5 min.
  await clock.advance(359_000)
  expect(fleet.nodes()[0]?.health).toBe('online')
  await clock.advance(540_000)
  expect(settled()).toEqual([])
  await clock.advance(2_000)

  expect(await outcome).toMatchObject({ error: { code: 'upstream_timeout' } })
  expect(settled()).toMatchObject([{ residency: 'cold', outcome: { end: 'failed' } }])
  await clock.advance(30_000)
  expectIdle()
})

test('while it loads for one request nothing else starts there, until a report shows the model', async () => {
  const { clock, gateway, ready, submit, fleet } = host({ a: jit('other') }, { describe })
  await ready()

  submit()
  await clock.advance(0)
  submit()
  submit({ asked: 'other' })
  await clock.advance(10_000)
  expect(gateway.running.map(({ call }) => call.model)).toEqual(['m'])
  expect(fleet.waiters().map(({ model, kind }) => [model, kind])).toEqual([
    ['m', 'waiting'],
    ['other', 'waiting'],
  ])

  gateway.reports.set('a', jit('m', 'other'))
  await clock.advance(2_000)
  expect(gateway.running.map(({ call }) => call.model).sort()).toEqual(['m', 'm', 'other'])
})

test('a client that leaves does not end the load that it began: the engine reads its prompt first', async () => {
  const { clock, gateway, ready, submit, expectIdle } = host({ a: jit('other') }, { describe })
  await ready()

  const first = submit()
  await clock.advance(0)
  first.leave()
  const second = submit({ asked: 'other' })
  // Reports come all the while, and prove nothing.
  await clock.advance(19_000)
  expect(gateway.running).toEqual([])

  await clock.advance(2_000)
  expect(gateway.running.map(({ call }) => call.model)).toEqual(['other'])
  second.leave()
  await clock.advance(30_000)
  expectIdle()
})

test('the load is over when its request failed, and the next one begins it anew', async () => {
  const { clock, gateway, ready, submit, fleet, settled } = host({ a: jit() }, { describe, policy: { retries: 0 } })
  await ready()

  submit()
  submit()
  await clock.advance(0)
  gateway.running[0]?.fail({ class: 'status', status: 500, message: 'the node answered 500' })
  await clock.advance(0)

  expect(settled()).toHaveLength(1)
  expect(gateway.running).toHaveLength(1)
  expect(fleet.nodes()[0]?.loading).toBe('m')
})

test('what a load took is learned from the report that first shows the model', async () => {
  const learned: unknown[] = []
  const samples = { ...noSamples(), addLoad: (...load: unknown[]) => void learned.push(load) }
  const { clock, gateway, ready, submit } = host({ a: jit() }, { describe, samples })
  await ready()

  submit()
  await clock.advance(3_000)
  gateway.reports.set('a', jit('m'))
  await clock.advance(2_000)

  expect(learned).toEqual([['a', 'm', expect.any(Number), undefined]])
  expect((learned as number[][])[0]?.[2]).toBeWithin(3_000, 5_000)
})
