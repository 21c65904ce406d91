import { expect, test } from 'bun:test'
import { nodeMachine } from '../../actors/node.machine'
import type { Failure } from '../../src/domain/facts'
import { actorOf, poison } from '../support/crashes'
import { host, resident, testConfig, testNode } from '../support/host'
import { missing, walkOfMachine, watch } from '../support/transitions'

const walk = walkOfMachine(nodeMachine)
const refused = new Error('connection refused')
const failed = (kind: Failure['class'], message = 'bad'): object => ({
  type: 'attempt.failed',
  failure: { class: kind, message, bytes: 0, elapsedMs: 1 },
})

const begin = async (
  report: Parameters<typeof host>[0][string] = resident(),
  change: Parameters<typeof host>[1] = {},
) => {
  const h = host({ a: report }, change)
  watch(h.fleet.root, { node: walk })
  await h.ready()
  const send = (event: object) => actorOf(h, 'node/a').send(event as never)
  const axes = () => {
    const [node] = h.fleet.nodes()
    return [node?.health, node?.admission, node?.breaker]
  }
  return {
    ...h,
    send,
    axes,
    health: () => axes()[0],
    reportAs: (next: typeof report) => h.gateway.reports.set('a', next),
  }
}

test('health: unknown, online, suspect, offline and back, by polls', async () => {
  const never = await begin(refused)
  expect(never.health()).toBe('unknown')
  await never.clock.advance(5_000)
  expect(never.health()).toBe('offline')
  await never.clock.advance(5_000)
  never.reportAs(resident())
  await never.clock.advance(5_000)
  expect(never.health()).toBe('online')

  never.reportAs(refused)
  await never.clock.advance(2_000)
  expect(never.health()).toBe('suspect')
  never.reportAs(resident())
  await never.clock.advance(2_000)
  expect(never.health()).toBe('online')
  never.reportAs(refused)
  await never.clock.advance(7_000)
  expect(never.health()).toBe('offline')
})

test('bytes that flow are life, whether the polls are answered or not', async () => {
  const { clock, reportAs, health, submit, gateway, send } = await begin()
  submit()
  await clock.advance(0)
  gateway.running[0]?.start()
  const keepFlowing = async (ms: number) => {
    for (let at = 0; at < ms; at += 500) {
      const flow = gateway.running[0]?.flow
      if (flow !== undefined) Object.assign(flow, { bytes: flow.bytes + 1, lastByteAt: clock.now() })
      await clock.advance(500)
    }
  }
  await keepFlowing(500)
  reportAs(refused)
  await keepFlowing(10_000)
  expect(health()).toBe('online')
  send(failed('reset'))
  await keepFlowing(6_000)
  expect(health()).toBe('suspect')
})

test('requests that stand without a first byte make it suspect, until one goes well', async () => {
  const { clock, send, health } = await begin()
  send({ type: 'request.stalled', request: 'r1' })
  send({ type: 'request.unstalled', request: 'r1' })
  for (const request of ['r1', 'r2', 'r3']) send({ type: 'request.stalled', request })
  expect(health()).toBe('suspect')
  await clock.advance(2_000)
  expect(health()).toBe('suspect')
  send({ type: 'request.stalled', request: 'r4' })
  send({ type: 'attempt.succeeded' })
  expect(health()).toBe('online')
  send(failed('connect'))
  send({ type: 'request.stalled', request: 'r5' })
  expect(health()).toBe('suspect')
  send({ type: 'attempt.succeeded' })
  send({ type: 'attempt.succeeded' })
  expect(health()).toBe('online')
})

test('admission: every way between open, paused and draining', async () => {
  const { axes, send } = await begin()
  const steps = ['pause', 'resume', 'drain', 'resume', 'pause', 'drain', 'pause', 'resume']
  const seen = steps.map((verb) => {
    send({ type: `node.${verb}` })
    return axes()[1]
  })
  expect(seen).toEqual(['paused', 'open', 'draining', 'open', 'paused', 'draining', 'paused', 'open'])
})

test('breaker: opens on failures, tries one, opens again for longer or closes', async () => {
  const { axes, send, clock } = await begin()
  for (let i = 0; i < 5; i++) send(failed('status'))
  expect(axes()[2]).toBe('open')
  await clock.advance(5_000)
  expect(axes()[2]).toBe('half_open')
  send(failed('status'))
  expect(axes()[2]).toBe('open')
  await clock.advance(10_000)
  send({ type: 'attempt.succeeded' })
  expect(axes()[2]).toBe('closed')
})

test('BL-E02 breaker: failures that were the request’s own are taken back, and an open one closes', async () => {
  const { axes, send } = await begin()
  const forgiven = { type: 'attempt.forgiven', message: 'NaN' }
  send(failed('status', 'NaN'))
  send(forgiven)
  for (let i = 0; i < 4; i++) send(failed('status'))
  expect(axes()[2]).toBe('closed')
  send(failed('status', 'NaN'))
  expect(axes()[2]).toBe('open')
  send(forgiven)
  expect(axes()[2]).toBe('closed')
})

test('one that refuses because it is busy stands behind the others for a while', async () => {
  const { send, clock } = await begin()
  send(failed('overloaded'))
  send(failed('overloaded'))
  await clock.advance(2_000)
  send({ type: 'attempt.succeeded' })
})

test('a model that it does not have after all is not asked of it again', async () => {
  const { send, fleet } = await begin()
  send({
    type: 'attempt.failed',
    failure: { class: 'model_missing', message: 'no m', bytes: 0, elapsedMs: 1 },
    model: 'm',
  })
  expect(fleet.nodes()[0]?.health).toBe('online')
})

test('its settings change; its runtime is replaced, and takes it along when it breaks too often', async () => {
  const h = await begin()
  h.fleet.configure(testConfig({ nodes: [testNode('a', { tags: ['fast'] })] as never }))
  await h.clock.advance(10)
  for (let i = 0; i < 6; i++) poison(h.fleet.shared.roster.get('a')?.runtime, 'runtime.observed')

  const [, , , , , sixth, node] = h.of('actor.failed')
  expect([sixth?.actor, node?.actor]).toEqual(['runtime/a', 'node/a'])
  expect(node?.message).toContain('the runtime broke too often')
  // Its action throws, so nobody reports that it was taken.
  walk.take('node xstate.error.actor.*[0]')
})

test('every transition of the node was taken', () => {
  expect(missing('node', walk)).toEqual([])
})
