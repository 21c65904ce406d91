import { describe, expect, test } from 'bun:test'
import { DEFAULT_PRIORITIES } from '../../src/domain/config'
import type { RouterError } from '../../src/domain/errors'
import type { Priority } from '../../src/domain/job'
import { host, resident, testConfig, testNode } from '../support/host'

type Fleet = ReturnType<typeof host>

const runningIds = ({ gateway }: Fleet) => gateway.running.map(({ call }) => call.request)

/** Ends whatever runs, again and again, and returns the order in which requests began. */
const drain = async (fleet: Fleet): Promise<readonly string[]> => {
  const order: string[] = []
  for (let turn = 0; fleet.gateway.running.length > 0 && turn < 200; turn++) {
    for (const running of [...fleet.gateway.running]) {
      order.push(running.call.request)
      running.start()
      running.finish()
    }
    await fleet.clock.advance(1)
  }
  return order
}

const errorOf = async (outcome: ReturnType<Fleet['submit']>['outcome']): Promise<RouterError> =>
  ((await outcome) as { error: RouterError }).error

describe.each(['residency', 'warmth'])('under %s', (use) => {
  test('critical before normal before batch, each in order of arrival', async () => {
    const fleet = host({ a: resident() }, { policy: { use } as never })
    await fleet.ready()
    const first = fleet.submit()
    const classes: Priority[] = ['batch', 'normal', 'critical', 'batch', 'normal', 'critical']
    const jobs: string[] = []
    for (const priority of classes) {
      await fleet.clock.advance(1)
      jobs.push(fleet.submit({ priority }).job.id)
    }
    await fleet.clock.advance(1)

    const order = await drain(fleet)

    const [batch1, normal1, critical1, batch2, normal2, critical2] = jobs as [
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    expect(order).toEqual([first.job.id, critical1, critical2, normal1, normal2, batch1, batch2])
    fleet.expectIdle()
  })

  test('batch takes at most its share of the slots, and others the rest', async () => {
    const fleet = host({ a: resident('m', 4) }, { policy: { use } as never })
    await fleet.ready()
    const batch = Array.from({ length: 4 }, () => fleet.submit({ priority: 'batch' }).job.id)
    await fleet.clock.advance(5)

    expect(runningIds(fleet)).toEqual(batch.slice(0, 2))

    const normal = Array.from({ length: 2 }, () => fleet.submit().job.id)
    await fleet.clock.advance(5)
    expect(runningIds(fleet).toSorted()).toEqual([...batch.slice(0, 2), ...normal].toSorted())

    await drain(fleet)
    expect(fleet.settled()).toHaveLength(6)
    fleet.expectIdle()
  })

  test('on a node of one slot batch runs when nothing else does', async () => {
    const fleet = host({ a: resident() }, { policy: { use } as never })
    await fleet.ready()
    const batch = fleet.submit({ priority: 'batch' })
    await fleet.clock.advance(5)

    expect(runningIds(fleet)).toEqual([batch.job.id])
    await drain(fleet)
    fleet.expectIdle()
  })

  test('batch that has waited for max_wait goes before the normal ones that came after it', async () => {
    const priorities = { ...DEFAULT_PRIORITIES, batchMaxWaitMs: 10_000 }
    const fleet = host({ a: resident() }, { policy: { use } as never, priorities })
    await fleet.ready()
    const first = fleet.submit()
    await fleet.clock.advance(1)
    const old = fleet.submit({ priority: 'batch' })
    await fleet.clock.advance(5_000)
    const normal = fleet.submit()
    await fleet.clock.advance(7_000)

    expect(await drain(fleet)).toEqual([first.job.id, old.job.id, normal.job.id])
    fleet.expectIdle()
  })

  test('two slots and a share of half: aged batch may take more than its share', async () => {
    const priorities = { ...DEFAULT_PRIORITIES, batchMaxWaitMs: 10_000 }
    const fleet = host({ a: resident('m', 2) }, { policy: { use } as never, priorities })
    await fleet.ready()
    const batch = [fleet.submit({ priority: 'batch' }).job.id, fleet.submit({ priority: 'batch' }).job.id]
    await fleet.clock.advance(5)
    expect(runningIds(fleet)).toEqual(batch.slice(0, 1))

    await fleet.clock.advance(12_000)

    expect(runningIds(fleet)).toEqual(batch)
    await drain(fleet)
    fleet.expectIdle()
  })
})

test('a queue that is full to others takes a critical request until its allowance is used up', async () => {
  const fleet = host({ a: resident() }, { policy: { use: 'warmth' } as never, limits: { queuePerNode: 1 } as never })
  await fleet.ready()
  fleet.submit()
  await fleet.clock.advance(1)
  fleet.submit()
  await fleet.clock.advance(1)

  const normal = fleet.submit()
  await fleet.clock.advance(1)
  const critical = fleet.submit({ priority: 'critical' })
  await fleet.clock.advance(1)
  const second = fleet.submit({ priority: 'critical' })
  await fleet.clock.advance(1)

  expect(await errorOf(normal.outcome)).toMatchObject({ code: 'queue_full' })
  expect(await errorOf(second.outcome)).toMatchObject({ code: 'queue_full' })
  expect(await drain(fleet)).toContain(critical.job.id)
  fleet.expectIdle()
})

test('so does the waiting room of a model', async () => {
  const fleet = host({ a: resident() }, { limits: { waitingPerModel: 1 } as never })
  await fleet.ready()
  for (let at = 0; at < 2; at++) {
    fleet.submit()
    await fleet.clock.advance(1)
  }

  const normal = fleet.submit()
  await fleet.clock.advance(1)
  const critical = fleet.submit({ priority: 'critical' })
  await fleet.clock.advance(1)

  expect(await errorOf(normal.outcome)).toMatchObject({ code: 'queue_full' })
  expect(await drain(fleet)).toContain(critical.job.id)
})

test('a request may name its policy, and the record tells which one decided', async () => {
  const fleet = host({ a: resident() })
  await fleet.ready()
  fleet.submit({ policy: 'steady' })
  fleet.submit()
  await fleet.clock.advance(1)

  expect(fleet.of('request.placed').map(({ policy }) => policy)).toEqual(['steady', 'residency'])
  await drain(fleet)
})

test('another order of the classes holds for those that wait already', async () => {
  const fleet = host({ a: resident() })
  await fleet.ready()
  const first = fleet.submit()
  await fleet.clock.advance(1)
  const normal = fleet.submit()
  const batch = fleet.submit({ priority: 'batch' })
  await fleet.clock.advance(1)
  fleet.fleet.configure(
    testConfig({
      nodes: [testNode('a')] as never,
      priorities: { ...DEFAULT_PRIORITIES, order: ['batch', 'normal', 'critical'] },
    }),
  )
  await fleet.clock.advance(1)

  expect(await drain(fleet)).toEqual([first.job.id, batch.job.id, normal.job.id])
})
