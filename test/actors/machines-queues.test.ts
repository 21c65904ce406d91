import { describe, expect, test } from 'bun:test'
import type { AnyActorRef } from 'xstate'
import { queueChart, queueLogic } from '../../actors/queue.machine'
import { queuesChart, queuesLogic } from '../../actors/queues.machine'
import type { QueueEntry } from '../../actors/protocol'
import { DEFAULT_PRIORITIES } from '../../src/domain/config'
import { alone } from '../support/alone'
import { missing, walkOfChart, watch } from '../support/transitions'

const walks = { queue: walkOfChart(queueChart), queues: walkOfChart(queuesChart) }

const entry = (request: string, change: Partial<QueueEntry> = {}): QueueEntry => ({
  request,
  attempt: 1,
  arrivedAt: 0,
  start: false,
  residency: 'resident',
  priority: 'normal',
  ...change,
})

const short = ({ event: { type, request } }: { event: { type: string; request?: unknown } }): string =>
  request === undefined ? type : `${type} ${request}`

describe('queue:', () => {
  const begin = (limit = 2) => {
    const stage = alone(
      queueLogic,
      'queue/a/m',
      { node: 'a', model: 'm', key: 'm', limit, rules: DEFAULT_PRIORITIES, now: () => 0 },
      ['request/r1', 'request/r2'],
    )
    watch(stage.root, walks)
    const queue: AnyActorRef = stage.begin()
    const look = () => queue.getSnapshot() as { value: string; status: string; context: { waiting: QueueEntry[] } }
    return {
      ...stage,
      queue,
      look,
      waiting: () => look().context.waiting.map(({ request }) => request),
      /** To the dispatcher, what it has heard since the last call. */
      heard: () =>
        stage.sent
          .splice(0)
          .filter(({ to }) => to === 'dispatcher')
          .map(short),
    }
  }

  test('starts what is reserved, keeps what is bound under its limit, in the order of arrival', () => {
    const { queue, heard, waiting, sent } = begin()
    queue.send({ type: 'queue.enqueue', entry: entry('r1', { start: true }) })
    expect(sent.map(({ to, event }) => [to, event.type])).toEqual([['request/r1', 'slot.granted']])
    queue.send({ type: 'queue.enqueue', entry: entry('r3', { arrivedAt: 3 }) })
    queue.send({ type: 'queue.enqueue', entry: entry('r2', { arrivedAt: 2 }) })
    expect(waiting()).toEqual(['r2', 'r3'])
    queue.send({ type: 'queue.enqueue', entry: entry('r4') })
    expect(heard()).toEqual(['bound.gone r4'])
    queue.send({ type: 'queue.configure', limit: 3, rules: DEFAULT_PRIORITIES })
    queue.send({ type: 'queue.enqueue', entry: entry('r4', { arrivedAt: 4 }) })
    expect(waiting()).toEqual(['r2', 'r3', 'r4'])
    queue.send({ type: 'queue.withdraw', request: 'r3' })
    expect([heard(), waiting()]).toEqual([['bound.gone r3'], ['r2', 'r4']])
  })

  test('starts its head when a slot is promised, declines when nobody is left, releases to the dispatcher', () => {
    const { queue, heard } = begin()
    queue.send({ type: 'queue.enqueue', entry: entry('r1') })
    queue.send({ type: 'queue.start', batch: true })
    expect(heard()).toEqual(['slot.taken r1'])
    queue.send({ type: 'queue.start', batch: true })
    expect(heard()).toEqual(['slot.declined'])
    queue.send({ type: 'slot.released', request: 'r1', attempt: 9 })
    expect(heard()).toEqual([])
    queue.send({ type: 'slot.released', request: 'r1', attempt: 1 })
    expect(heard()).toEqual(['slot.freed r1'])
  })

  test('sends back whoever waits, all of them before any asks again, and stays open', () => {
    const { queue, sent, look } = begin()
    for (const request of ['r1', 'r2']) queue.send({ type: 'queue.enqueue', entry: entry(request) })
    sent.length = 0
    queue.send({ type: 'queue.return', reason: 'node_away' })
    expect(sent.map(short)).toEqual(['bound.gone r1', 'bound.gone r2', 'queue.refused', 'queue.refused'])
    expect(look()).toMatchObject({ value: 'open', context: { waiting: [] } })
  })

  test('closes: who waits is refused, who runs ends, then it is over; unless its node comes back before', () => {
    const { queue, heard, look } = begin()
    const run = (...requests: string[]) => {
      for (const request of requests) queue.send({ type: 'queue.enqueue', entry: entry(request, { start: true }) })
    }
    run('r1', 'r2', 'r5', 'r6')
    queue.send({ type: 'queue.enqueue', entry: entry('r3') })
    queue.send({ type: 'queue.close', reason: 'node_removed' })
    expect([look().value, heard()]).toEqual(['closed', ['bound.gone r3']])
    queue.send({ type: 'queue.enqueue', entry: entry('r4', { start: true }) })
    queue.send({ type: 'queue.start', batch: true })
    queue.send({ type: 'queue.configure', limit: 5, rules: DEFAULT_PRIORITIES })
    expect(heard()).toEqual(['slot.freed r4', 'slot.declined'])
    queue.send({ type: 'queue.open' })
    expect(look().value).toBe('open')
    queue.send({ type: 'queue.close', reason: 'node_removed' })

    queue.send({ type: 'slot.released', request: 'r1', attempt: 1 })
    queue.send({ type: 'queue.withdraw', request: 'r2' })
    queue.send({ type: 'queue.withdraw', request: 'r5' })
    expect(look().status).toBe('active')
    queue.send({ type: 'slot.released', request: 'r6', attempt: 1 })
    expect([look().value, look().status]).toEqual(['emptied', 'done'])
  })

  test('closed, it is over too when its last one is withdrawn', () => {
    const { queue, look } = begin()
    queue.send({ type: 'queue.enqueue', entry: entry('r1', { start: true }) })
    queue.send({ type: 'queue.close', reason: 'node_removed' })
    queue.send({ type: 'queue.withdraw', request: 'r1' })
    expect(look().status).toBe('done')
  })

  test('every transition was taken', () => {
    expect(missing('queue', walks.queue)).toEqual([])
  })
})

describe('queues:', () => {
  const begin = () => {
    const registry = new Map<string, AnyActorRef>()
    const failed: string[] = []
    const stage = alone(queuesLogic, 'queues', {
      registry,
      limit: 5,
      rules: DEFAULT_PRIORITIES,
      journal: { record: (fact: { type: string }) => void failed.push(fact.type) },
      now: () => 0,
    })
    watch(stage.root, walks)
    const queues = stage.begin()
    const enqueue = (request: string, node = 'a', start = true) =>
      queues.send({ type: 'queue.enqueue', node, model: 'M:latest', entry: entry(request, { start }) })
    return { ...stage, queues, registry, failed, enqueue, heard: () => stage.sent.splice(0).map(short) }
  }

  test('opens a queue for each node and model on demand and passes on its mail', () => {
    const { queues, enqueue, registry, heard } = begin()
    enqueue('r1')
    enqueue('r2', 'b')
    enqueue('r3', 'a', false)
    expect([...registry.keys()]).toEqual(['queue/a/m', 'queue/b/m'])
    queues.send({ type: 'queue.start', node: 'a', model: 'm', batch: true })
    queues.send({ type: 'queue.withdraw', node: 'a', model: 'm', request: 'r1' })
    queues.send({ type: 'queue.start', node: 'c', model: 'm', batch: true })
    expect(heard()).toEqual(['slot.taken r3', 'slot.declined'])
    queues.send({ type: 'queues.configure', limit: 9, rules: DEFAULT_PRIORITIES })
    expect(registry.get('queue/a/m')?.getSnapshot().context).toMatchObject({ limit: 9 })
  })

  test('sends back whoever is bound to a node', () => {
    const { queues, enqueue, heard } = begin()
    enqueue('r1', 'a', false)
    enqueue('r2', 'b', false)
    queues.send({ type: 'queues.return', node: 'a', reason: 'node_away' })
    expect(heard()).toEqual(['bound.gone r1'])
  })

  test('sends back only those of one model where it says so', () => {
    const { queues, enqueue, heard } = begin()
    enqueue('r1', 'a', false)
    queues.send({ type: 'queues.return', node: 'a', model: 'other', reason: 'load_due' })
    expect(heard()).toEqual([])
    queues.send({ type: 'queues.return', node: 'a', model: 'm', reason: 'load_due' })
    expect(heard()).toEqual(['bound.gone r1'])
  })

  test('closes those of a node, forgets each when it has ended, opens those that have not', () => {
    const { queues, enqueue, registry } = begin()
    enqueue('r1')
    enqueue('r2', 'b')
    queues.send({ type: 'queues.close', node: 'a', reason: 'node_removed' })
    expect(registry.get('queue/a/m')?.getSnapshot().value).toBe('closed')
    queues.send({ type: 'queues.open', node: 'a' })
    expect(registry.get('queue/a/m')?.getSnapshot().value).toBe('open')
    queues.send({ type: 'queues.close', node: 'a', reason: 'node_removed' })
    registry.get('queue/a/m')?.send({ type: 'slot.released', request: 'r1', attempt: 1 })
    expect([...registry.keys()]).toEqual(['queue/b/m'])
  })

  test('replaces one that broke: what ran is known to its heir, the rest is told', () => {
    const { registry, enqueue, heard, failed } = begin()
    enqueue('r1')
    enqueue('r2', 'a', false)
    const broken = registry.get('queue/a/m')
    broken?.send({ type: 'queue.enqueue' })
    expect(registry.get('queue/a/m')).not.toBe(broken)
    expect(heard()).toEqual(['queue.broke', 'requests.unbind'])
    expect(failed).toEqual(['actor.failed'])
    registry.get('queue/a/m')?.send({ type: 'slot.released', request: 'r1', attempt: 1 })
    expect(heard()).toEqual(['slot.freed r1'])
  })

  test('every transition was taken', () => {
    expect(missing('queues', walks.queues)).toEqual([])
  })
})
