import { expect, test } from 'bun:test'
import { host, resident } from '../support/host'

test('a request runs on the node that holds its model, and everything is back at zero afterwards', async () => {
  const { fleet, gateway, submit, ready, settled, expectIdle, clock } = host({ a: resident() })
  await ready()

  const { outcome } = submit()
  await clock.advance(0)
  gateway.running[0]?.start()
  gateway.running[0]?.finish()
  await clock.advance(0)

  expect(await outcome).toMatchObject({ reply: { status: 200 } })
  expect(settled()).toMatchObject([{ outcome: { end: 'completed', node: 'a', retries: 0 } }])
  expect(fleet.nodes()[0]?.state).toBe('online')
  expectIdle()
})

test('four at once on four idle nodes land on four nodes', async () => {
  const { gateway, submit, ready, clock } = host({ a: resident(), b: resident(), c: resident(), d: resident() })
  await ready()

  for (let i = 0; i < 4; i++) submit()
  await clock.advance(0)

  expect(gateway.running.map(({ call }) => call.node.name).sort()).toEqual(['a', 'b', 'c', 'd'])
})

test('a fifth waits, and starts when a slot is free', async () => {
  const { gateway, submit, ready, clock, fleet } = host({ a: resident('m', 2) })
  await ready()

  for (let i = 0; i < 3; i++) submit()
  await clock.advance(0)
  expect(gateway.running).toHaveLength(2)
  expect(fleet.waiters()).toMatchObject([{ kind: 'waiting', reason: 'busy', node: 'a' }])

  gateway.running[0]?.start()
  gateway.running[0]?.finish()
  await clock.advance(0)
  expect(gateway.running).toHaveLength(2)
  expect(fleet.waiters()).toEqual([])
})

test('a failure before the first byte goes to another node', async () => {
  const { gateway, submit, ready, clock, of, settled, expectIdle } = host({ a: resident(), b: resident() })
  await ready()

  const { outcome } = submit()
  await clock.advance(0)
  const first = gateway.running[0]?.call.node.name
  gateway.running[0]?.fail()
  await clock.advance(0)
  const second = gateway.running[0]?.call.node.name
  gateway.running[0]?.start()
  gateway.running[0]?.finish()
  await clock.advance(0)

  expect(new Set([first, second])).toEqual(new Set(['a', 'b']))
  expect(await outcome).toMatchObject({ reply: { status: 200 } })
  expect(of('attempt.failed')).toMatchObject([{ node: first, retried: true }])
  expect(settled()).toMatchObject([{ outcome: { end: 'completed', node: second, retries: 1 } }])
  expectIdle()
})

test('a client that leaves while waiting, held or running frees what it held', async () => {
  const { gateway, submit, ready, clock, settled, expectIdle } = host({ a: resident() })
  await ready()

  const running = submit()
  const waiting = submit()
  const held = submit({ asked: 'm', needs: ['chat'], pin: 'a', contextTokens: 5 })
  await clock.advance(0)
  waiting.leave()
  held.leave()
  running.leave()
  await clock.advance(30_000)

  expect(gateway.running).toHaveLength(0)
  expect(settled().map((fact) => fact.type === 'request.settled' && fact.outcome.end)).toEqual([
    'client_disconnected',
    'client_disconnected',
    'client_disconnected',
  ])
  expectIdle()
})

test('an unknown model is refused at once when every node was asked', async () => {
  const { submit, ready } = host({ a: resident('qwen3:8b') })
  await ready()

  expect(await submit({ asked: 'qwen3:8', models: ['qwen3:8'] }).outcome).toMatchObject({
    error: { code: 'model_not_found', details: { hint: "Did you mean 'qwen3:8b'?" } },
  })
})

test('a held request expires with its reason after the hold limit', async () => {
  const { submit, clock, settled, expectIdle } = host({ a: new Error('connection refused') })

  const { outcome } = submit()
  await clock.advance(31_000)

  expect(await outcome).toMatchObject({ error: { code: 'no_capacity' } })
  expect(settled()).toMatchObject([{ outcome: { end: 'expired', status: 503, phase: 'held' } }])
  expectIdle()
})

test('a cold model is loaded once for many, and the load outlives the client that asked for it', async () => {
  const cold = { models: [{ name: 'm', sizeGb: 5 }], resident: [], canLoad: true, canUnload: true, memoryGb: 24 }
  const { gateway, submit, ready, clock, fleet, settled, expectIdle } = host({ a: cold })
  await ready()

  const first = submit()
  await clock.advance(0)
  submit()
  await clock.advance(0)
  first.leave()
  await clock.advance(0)
  expect(gateway.loads).toHaveLength(1)
  expect(fleet.waiters().map(({ kind }) => kind)).toEqual(['loading'])

  gateway.reports.set('a', { ...cold, resident: [{ name: 'm', state: 'ready', memoryGb: 6 }] })
  gateway.loads[0]?.done()
  await clock.advance(0)
  expect(gateway.running).toHaveLength(1)
  gateway.running[0]?.start()
  gateway.running[0]?.finish()
  await clock.advance(0)

  expect(settled()).toMatchObject([
    { outcome: { end: 'client_disconnected', phase: 'loading' } },
    { residency: 'cold', outcome: { end: 'completed' } },
  ])
  expectIdle()
})
