import { describe, expect, test } from 'bun:test'
import type { AnyActorRef, EventObject } from 'xstate'
import type { RequestContext, RequestPorts } from '../../actors/request/context'
import { requestChart, requestLogic } from '../../actors/request.machine'
import type { Config } from '../../src/domain/config'
import { RouterError } from '../../src/domain/errors'
import type { Failure } from '../../src/domain/facts'
import type { Flow } from '../../src/ports/node-gateway'
import { alone } from '../support/alone'
import { testConfig, testJob, testNode } from '../support/host'
import { missing, walkOfChart, watch } from '../support/transitions'

type State = keyof typeof requestChart.states
type Event = EventObject & Record<string, unknown>

const walk = walkOfChart(requestChart)
const failure: Failure = { class: 'reset', message: 'connection reset', bytes: 0, elapsedMs: 5 }
const refused: Failure = { class: 'connect', message: 'connection refused', bytes: 0, elapsedMs: 5 }
const refusal = new RouterError('queue_full', 'Full.')
const granted = { type: 'slot.granted', node: 'a', model: 'm', attempt: 1, residency: 'resident', queue: 'queue/a/m' }

const events: Readonly<Record<string, Event>> = {
  held: { type: 'placement.held', reason: 'offline' },
  waiting: { type: 'placement.waiting', reason: 'busy', node: 'a' },
  loading: { type: 'placement.loading', node: 'a', model: 'm' },
  bound: { type: 'placement.bound', node: 'a', model: 'm' },
  refused: { type: 'placement.refused', error: refusal },
  lost: { type: 'placement.lost', node: 'a', failure },
  unreached: { type: 'placement.lost', node: 'a', failure: refused },
  gone: { type: 'placement.lost', node: 'a' },
  queueRefused: { type: 'queue.refused', node: 'a', reason: 'queue_restarted' },
  again: { type: 'place.again' },
  blamed: { type: 'place.again', blamed: true },
  granted,
  ticked: { type: 'hold.ticked' },
  started: { type: 'reply.started', firstByteMs: 7 },
}
const event = (name: keyof typeof events): Event => events[name] as Event

const PATHS: Readonly<Partial<Record<State, readonly Event[]>>> = {
  placing: [],
  held: [event('held')],
  waiting: [event('waiting')],
  loading: [event('loading')],
  queued: [event('bound')],
  starting: [granted],
  streaming: [granted, event('started')],
}

/** A request in that state, its context changed as wanted. */
const begin = (
  state: State,
  change: Partial<RequestContext> = {},
  job: Parameters<typeof testJob>[0] = {},
  limits: Partial<Config['limits']> = {},
) => {
  const facts: string[] = []
  const refused: RouterError[] = []
  const cuts: string[] = []
  let signal: AbortSignal | undefined
  const stage = alone(
    requestLogic,
    'request/r',
    {
      job: testJob({ id: 'r', arrivedAt: 1_800_000_000_000, ...job }),
      ports: {
        gateway: {
          forward: (_call, _listener, given): Flow => {
            signal = given
            return { lastByteAt: stage.clock.now(), bytes: 3, clientStalledSince: 0, ...change.flow }
          },
          cut: (request) => void cuts.push(request),
        },
        journal: { record: ({ type }) => void facts.push(type) },
        node: (name) => testNode(name),
        awaitsSuccess: () => true,
        open: () => {},
        refuse: (_request, error) => void refused.push(error),
        now: () => stage.clock.now(),
        serviceMs: () => undefined,
        config: testConfig({ limits }),
      } satisfies RequestPorts,
    },
    ['node/a'],
  )
  watch(stage.root, { request: walk })
  const actor: AnyActorRef = stage.begin()
  for (const step of PATHS[state] ?? []) actor.send(step)
  const look = () => actor.getSnapshot() as { value: State; status: string; context: RequestContext }
  expect(look().value).toBe(state)
  const { flow: _, ...rest } = change
  Object.assign(look().context, rest)
  return {
    ...stage,
    actor,
    look,
    cuts,
    refused,
    settles: () => facts.filter((type) => type === 'request.settled').length,
    isAborted: () => signal?.aborted,
    to: (name: string) => stage.sent.filter((one) => one.to === name).map((one) => one.event),
  }
}

const STANDING = ['placing', 'held', 'waiting', 'loading', 'queued'] as const
const LAST = { attempt: 9 }

describe.each(STANDING)('%s:', (state) => {
  const table: readonly [keyof typeof events, State, Partial<RequestContext>][] = [
    ['held', 'held', {}],
    ['waiting', 'waiting', {}],
    ['loading', 'loading', {}],
    ['bound', 'queued', {}],
    ['granted', 'starting', {}],
    ['refused', 'settled', {}],
    ['lost', 'placing', {}],
    ['lost', 'settled', LAST],
    ['unreached', 'placing', LAST],
    ['gone', 'placing', LAST],
    ['queueRefused', 'placing', {}],
    ['queueRefused', 'settled', { queueCrashes: 3 }],
    ['again', state === 'queued' ? 'queued' : 'placing', {}],
    ['blamed', state === 'queued' ? 'queued' : 'settled', { hasBlame: true }],
    ['blamed', state === 'queued' ? 'queued' : 'placing', {}],
  ]
  test.each(table)(`%s leads to %s`, (name, target, change) => {
    const { actor, look, settles } = begin(state, change)
    actor.send(event(name))
    expect(look().value).toBe(target)
    expect(settles()).toBe(target === 'settled' ? 1 : 0)
  })

  test.each(['gone', 'lost', 'queueRefused', 'again'] as const)('whoever is back through %s asks again', (name) => {
    const { actor, look, to } = begin(state)
    const before = to('dispatcher').length
    actor.send(event(name))
    if (look().value === 'placing') expect(to('dispatcher').length).toBe(before + 1)
    else expect([state, name]).toEqual(['queued', 'again'])
  })
})

test('a held request asks again on each tick, and its limit counts all its time on hold', async () => {
  const { actor, to, clock, look, refused } = begin('held')
  actor.send(event('ticked'))
  expect(to('dispatcher').map(({ cause }) => cause)).toEqual(['arrival', 'hold'])

  await clock.advance(20_000)
  actor.send(event('again'))
  actor.send(event('held'))
  await clock.advance(9_999)
  expect(look().value).toBe('held')
  await clock.advance(1)
  expect(look().value).toBe('settled')
  expect(refused).toMatchObject([{ code: 'no_capacity' }])
})

test.each(['held', 'waiting', 'loading', 'queued'] as const)(
  'its deadline ends a request that is %s',
  async (state) => {
    const { clock, look, refused, to } = begin(state, {}, { deadlineAt: 1_800_000_001_000 })
    await clock.advance(1_000)

    expect(look().value).toBe('settled')
    expect(refused).toMatchObject([{ code: 'deadline_exceeded' }])
    expect(to('dispatcher').at(-1)).toEqual({ type: 'job.gone', request: 'r' })
  },
)

test.each(['placement.held', 'placement.waiting', 'placement.refused'])(
  'one that was refused for being stale only gets another chance there (%s)',
  (type) => {
    const { actor, look, to } = begin('placing', { staleAt: 'a', excluded: ['a'] })
    actor.send({ ...refusalLike(type) })
    expect(look().value).toBe('placing')
    expect(to('dispatcher').at(-1)).toMatchObject({ excluded: [] })
  },
)
const refusalLike = (type: string): Event => ({ type, reason: 'busy', error: refusal })

describe('starting:', () => {
  test.each([
    ['a first byte', event('started'), 'streaming', {}],
    ['a request that the node cannot be asked', { type: 'reply.refused', error: refusal }, 'settled', {}],
    ['the node says no to the client', { type: 'reply.failed', failure, rejected: true }, 'settled', {}],
    ['a failure', { type: 'reply.failed', failure, rejected: false }, 'placing', {}],
    ['the last failure', { type: 'reply.failed', failure, rejected: false }, 'settled', LAST],
    ['a node that is not reached', { type: 'reply.failed', failure: refused, rejected: false }, 'placing', LAST],
    ['its node stands still', { type: 'node.wedged', node: 'a' }, 'starting', {}],
    ['another node is free', { type: 'placement.elsewhere', attempt: 1 }, 'placing', {}],
    ['news for an earlier attempt', { type: 'placement.elsewhere', attempt: 0 }, 'starting', {}],
  ] as const)('%s', (_, heard, target, change) => {
    const { actor, look, isAborted, to } = begin('starting', change)
    actor.send(heard as Event)

    expect(look().value).toBe(target)
    expect(isAborted()).toBe(target === 'placing' || target === 'settled')
    expect(to('queue/a/m').length).toBe(0)
  })

  test('no first byte: told to the node first, then elsewhere, or given up', async () => {
    const { clock, look, isAborted } = begin('starting')
    await clock.advance(60_000)
    expect(look().context.stalled).toBe(true)
    await clock.advance(600_000)
    expect(look().value).toBe('placing')
    expect(isAborted()).toBe(true)

    const last = begin('starting', LAST)
    await last.clock.advance(700_000)
    expect(last.look().value).toBe('settled')
    expect(last.refused).toMatchObject([{ code: 'upstream_timeout' }])
  })
})

describe('streaming:', () => {
  test('ends with the answer', () => {
    const { actor, look, settles } = begin('streaming')
    const summary = { end: 'completed', status: 200, bytes: 9, durationMs: 50 }
    actor.send({ type: 'reply.finished', summary })
    expect([look().value, look().status, settles()]).toEqual(['settled', 'done', 1])
  })

  test('silence is cut, a stalled client is cut, and one that still flows is looked at again later', async () => {
    const silent = begin('streaming')
    await silent.clock.advance(130_000)
    expect([silent.look().value, silent.cuts]).toEqual(['settled', ['r']])

    const stalled = begin('streaming', { flow: { clientStalledSince: 1 } as Flow })
    await stalled.clock.advance(130_000)
    expect(stalled.look().context.ending).toMatchObject({ code: 'client_stalled' })

    const flowing = begin('streaming')
    await flowing.clock.advance(100_000)
    ;(flowing.look().context.flow as Flow).lastByteAt = flowing.clock.now()
    await flowing.clock.advance(100_000)
    expect(flowing.look().value).toBe('streaming')
  })
})

test.each(['starting', 'streaming'] as const)('the most that a request may take ends one that is %s', async (state) => {
  const { clock, look, isAborted } = begin(state, {}, {}, { totalTimeoutMs: 5_000 })
  await clock.advance(5_000)
  expect([look().value, isAborted()]).toEqual(['settled', true])
})

test.each(Object.keys(PATHS) as State[])('a client that leaves, or a cut, ends one that is %s', (state) => {
  for (const type of ['client.left', 'request.cut']) {
    const { actor, look, settles } = begin(state)
    actor.send({ type, reason: 'draining' })
    expect([look().value, settles()]).toEqual(['settled', 1])
  }
})

test('BL-E02 two nodes that fail on it with the same words: it ends, and neither is blamed', () => {
  const broken: Failure = { class: 'status', status: 500, message: 'unsupported value: NaN', bytes: 0, elapsedMs: 5 }
  const place = { node: 'b', model: 'm', queue: 'queue/a/m', residency: 'resident' } as const
  const change = { attempt: 2, lastFailure: broken, lastFailedNode: 'a', place }
  const { actor, look, to } = begin('starting', change, { needs: ['embedding'] })
  actor.send({ type: 'reply.failed', failure: broken, rejected: false })
  expect(look().value).toBe('settled')
  expect(to('node/a')).toMatchObject([{ type: 'attempt.forgiven', message: broken.message }])
})

test('a node that was not reached is named with the time of it, and uses up no try', () => {
  const { actor, look, to, clock } = begin('starting')
  actor.send({ type: 'reply.failed', failure: refused, rejected: false })

  expect(to('dispatcher').at(-1)).toMatchObject({
    type: 'request.place',
    cause: 'retry',
    attempt: 2,
    excluded: [],
    unreached: [{ node: 'a', since: clock.now() }],
  })
  expect(look().context).toMatchObject({ attempt: 2, unsent: 1 })
})

test('a client that has its headers already is known to have them', () => {
  const { actor, look } = begin('waiting')
  actor.send({ type: 'headers.sent' })
  expect(look().value).toBe('waiting')
})

test('every transition of the request was taken', () => {
  expect(missing('request', walk)).toEqual([])
})
