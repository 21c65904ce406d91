import { expect, test } from 'bun:test'
import { pollerChart } from '../../actors/poller.machine'
import { actorOf } from '../support/crashes'
import { host, resident, testNode } from '../support/host'
import { missing, walkOfChart, watch } from '../support/transitions'

const walk = walkOfChart(pollerChart)

const begin = async (report: Parameters<typeof host>[0][string] = resident()) => {
  const h = host({ a: report })
  watch(h.fleet.root, { poller: walk })
  await h.ready()
  return {
    ...h,
    send: (event: object) => actorOf(h, 'poller/a').send(event as never),
    health: () => h.fleet.nodes()[0]?.health,
    state: () => h.fleet.actors().find(({ id }) => id === 'poller/a')?.state,
    reportAs: (next: typeof report) => h.gateway.reports.set('a', next),
  }
}

test('a poll that is late, one that is not answered, one that fails, and one that is asked for', async () => {
  const { clock, reportAs, health, state, send, gateway } = await begin()
  expect(state()).toBe('resting')
  reportAs('hang')
  await clock.advance(3_000)
  expect(state()).toBe('asking')
  await clock.advance(2_000)
  expect(state()).toBe('late')
  await clock.advance(3_000)
  expect(health()).toBe('suspect')
  reportAs(new Error('connection refused'))
  await clock.advance(5_000)
  reportAs(resident())
  await clock.advance(5_000)
  expect(health()).toBe('online')
  const before = gateway.polls
  send({ type: 'node.poll' })
  expect(gateway.polls).toBe(before + 1)
  send({ type: 'node.poll' })
  expect(gateway.polls).toBe(before + 1)
})

test('a late poll is answered, or fails', async () => {
  const { clock, reportAs, state, send } = await begin()
  reportAs('hang')
  await clock.advance(4_500)
  expect(state()).toBe('late')
  send({ type: 'poll.answered', report: resident() })
  expect(state()).toBe('resting')
  await clock.advance(4_500)
  expect(state()).toBe('late')
  send({ type: 'poll.broke', message: 'reset' })
  expect(state()).toBe('resting')
})

test('other settings are polled with at once, or by the next poll', async () => {
  const { clock, reportAs, send, state, gateway } = await begin()
  const health = { pollEveryMs: 500, pollTimeoutMs: 5_000 }
  const before = gateway.polls
  send({ type: 'poller.configure', node: testNode('a'), health })
  expect(gateway.polls).toBe(before + 1)
  await clock.advance(600)
  expect(gateway.polls).toBe(before + 2)
  reportAs('hang')
  await clock.advance(600)
  send({ type: 'poller.configure', node: testNode('a'), health })
  await clock.advance(600)
  expect(state()).toBe('late')
  send({ type: 'poller.configure', node: testNode('a'), health })
  expect(state()).toBe('late')
})

test('a time limit below the time between polls ends a poll that is not late yet', async () => {
  const { clock, reportAs, send, state, health } = await begin()
  reportAs('hang')
  send({ type: 'poller.configure', node: testNode('a'), health: { pollEveryMs: 5_000, pollTimeoutMs: 1_000 } })
  await clock.advance(1_100)
  expect(state()).toBe('resting')
  expect(health()).toBe('suspect')
})

test('every transition of the poller was taken', () => {
  expect(missing('poller', walk)).toEqual([])
})
