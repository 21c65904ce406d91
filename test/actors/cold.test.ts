import { expect, test } from 'bun:test'
import type { NodeReport, ResidentModel } from '../../src/domain/node'
import { host } from '../support/host'

const names = ['m', 'm2', 'm3']

/** An engine that loads models of 5 GB on demand. */
const loader = (resident: readonly ResidentModel[] = [], more: Partial<NodeReport> = {}): NodeReport => ({
  models: names.map((name) => ({ name, sizeGb: 5 })),
  resident,
  canLoad: true,
  canUnload: true,
  ...more,
})

const ready = (name: string, slots = 1): ResidentModel => ({ name, state: 'ready', memoryGb: 5, slots })
const ask = (model: string) => ({ asked: model, models: [model] })

type Fleet = ReturnType<typeof host>

const runningModels = ({ gateway }: Fleet): string[] => gateway.running.map(({ call }) => call.model).sort()

/** Ends the load that is under way; the next report lists what is in memory then. */
const finishLoad = async ({ gateway, clock }: Fleet, report: NodeReport): Promise<void> => {
  const load = gateway.loads.shift()
  gateway.reports.set('a', report)
  load?.done()
  await clock.advance(0)
}

const answerAll = async ({ gateway, clock }: Fleet): Promise<void> => {
  for (const { start, finish } of [...gateway.running]) {
    start()
    finish()
  }
  await clock.advance(0)
}

test('BL-C08 a failed load is the failure of the request that asked for it; those that joined get the next load', async () => {
  const fleet = host({ a: loader([], { memoryGb: 40 }) }, { describe: () => ({ maxConcurrency: 8 }) })
  await fleet.ready()
  const first = fleet.submit()
  const joined = [fleet.submit(), fleet.submit(), fleet.submit()]
  await fleet.clock.advance(0)
  expect(fleet.gateway.loads).toHaveLength(1)

  fleet.gateway.loads.shift()?.fail('llama runner process has terminated')
  await fleet.clock.advance(0)

  expect(await first.outcome).toMatchObject({ error: { code: 'upstream_failed' } })
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m'])
  await finishLoad(fleet, loader([ready('m', 8)], { memoryGb: 40 }))
  await answerAll(fleet)
  for (const { outcome } of joined) expect(await outcome).toMatchObject({ reply: { status: 200 } })
  expect(fleet.settled().filter(({ outcome }) => outcome.end === 'failed')).toHaveLength(1)
  expect(fleet.settled().filter(({ outcome }) => outcome.end === 'completed' && outcome.retries > 0)).toEqual([])
  fleet.expectIdle()
})

test('BL-C08 a load that never succeeds ends for everybody, one load for each who asked', async () => {
  const fleet = host({ a: loader([], { memoryGb: 40 }) }, { describe: () => ({ maxConcurrency: 4 }) })
  await fleet.ready()
  const all = [fleet.submit(), fleet.submit(), fleet.submit(), fleet.submit()]

  let loads = 0
  for (let at = 0; at < 20; at++) {
    await fleet.clock.advance(100)
    for (const load of fleet.gateway.loads.splice(0)) {
      loads += 1
      load.fail('out of memory')
    }
  }

  expect(loads).toBe(4)
  for (const { outcome } of all) expect(await outcome).toMatchObject({ error: { code: 'upstream_failed' } })
  fleet.expectIdle()
})

test('one load at a time per node; everybody else waits for it, whoever leaves', async () => {
  const fleet = host({ a: loader([], { memoryGb: 40 }) }, { describe: () => ({ maxConcurrency: 50 }) })
  await fleet.ready()
  const many = Array.from({ length: 40 }, (_, at) => fleet.submit(ask(names[at % 3] ?? 'm')))
  await fleet.clock.advance(0)
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m'])

  // All who wait for the first model leave; its load goes on.
  for (const [at, { leave }] of many.entries()) if (at % 3 === 0) leave()
  await fleet.clock.advance(30_000)
  expect(fleet.gateway.loads).toHaveLength(1)
  expect(fleet.gateway.loads[0]?.signal.aborted).toBe(false)

  await finishLoad(fleet, loader([ready('m', 50)], { memoryGb: 40 }))
  expect(fleet.of('load.finished')).toMatchObject([{ model: 'm' }])
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m2'])
  await finishLoad(fleet, loader([ready('m', 50), ready('m2', 50)], { memoryGb: 40 }))
  await answerAll(fleet)
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m3'])
  await finishLoad(fleet, loader([ready('m', 50), ready('m2', 50), ready('m3', 50)], { memoryGb: 40 }))
  await answerAll(fleet)

  const ends = fleet.settled().map(({ outcome }) => outcome.end)
  expect(ends.filter((end) => end === 'client_disconnected')).toHaveLength(14)
  expect(ends.filter((end) => end === 'completed')).toHaveLength(26)
  expect(fleet.of('load.started')).toHaveLength(3)
  fleet.expectIdle()
})

test('BL-C01 no load beside an answer while the cap of the engine is unknown, although there is memory enough', async () => {
  const fleet = host({ a: loader([ready('m')], { memoryGb: 40 }) })
  await fleet.ready()
  fleet.submit()
  fleet.submit(ask('m2'))
  await fleet.clock.advance(60_000)
  expect(runningModels(fleet)).toEqual(['m'])
  expect(fleet.gateway.loads).toEqual([])

  await answerAll(fleet)
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m2'])
})

test('BL-C01 what was in memory at once before may be again, beside an answer', async () => {
  const fleet = host({ a: loader([ready('m'), ready('m3')], { memoryGb: 40 }) })
  await fleet.ready()
  fleet.gateway.reports.set('a', loader([ready('m')], { memoryGb: 40 }))
  await fleet.clock.advance(2_000)
  fleet.submit()
  fleet.submit(ask('m2'))
  await fleet.clock.advance(0)

  expect(fleet.gateway.loads).toMatchObject([{ model: 'm2', options: { evicts: [] } }])
})

test('BL-C01 after a load a resident model waits for the report that still lists it', async () => {
  const fleet = host({ a: loader([ready('m')]) })
  await fleet.ready()
  fleet.submit(ask('m2'))
  await fleet.clock.advance(0)
  // The engine pushes `m` out for it, and a report that tells so takes a while.
  fleet.gateway.reports.set('a', 'hang')
  fleet.gateway.loads.shift()?.done()
  await fleet.clock.advance(0)
  fleet.submit()
  await fleet.clock.advance(1_000)
  expect(runningModels(fleet)).toEqual(['m2'])

  fleet.gateway.reports.set('a', loader([ready('m2')]))
  await fleet.clock.advance(10_000)
  expect(runningModels(fleet)).toEqual(['m2'])
  expect(fleet.gateway.loads).toEqual([])
  await answerAll(fleet)
  expect(fleet.gateway.loads.map(({ model }) => model)).toEqual(['m'])
})

test('BL-C01 a model that answers without being listed counts as answering', async () => {
  const fleet = host({ a: loader([ready('m')]) })
  await fleet.ready()
  fleet.submit()
  await fleet.clock.advance(0)
  fleet.gateway.reports.set('a', loader([]))
  await fleet.clock.advance(4_000)

  fleet.submit(ask('m2'))
  await fleet.clock.advance(4_000)

  expect(fleet.gateway.loads).toEqual([])
})

test('BL-C03 a model past its expiry is not hot: the cold node takes the request', async () => {
  const fleet = host({ a: loader(), b: loader() })
  const stuck: ResidentModel = { ...ready('m'), expiresAt: fleet.clock.now() - 60_000 }
  await fleet.ready()
  fleet.gateway.reports.set('a', loader([stuck]))
  await fleet.clock.advance(2_000)
  fleet.submit()
  await fleet.clock.advance(0)

  expect(fleet.gateway.loads).toMatchObject([{ node: 'b', model: 'm' }])
  expect(fleet.fleet.nodes().map(({ hint }) => hint)).toEqual([
    'm is listed as in memory although its time has run out: restart the engine if it stays.',
    undefined,
  ])
})

test('BL-C01 an engine that loads by request and keeps one model gets no second one beside an answer', async () => {
  const jit = { canLoad: false, canUnload: false, loadsOnRequest: true }
  const fleet = host({ a: loader([ready('m')], jit) })
  await fleet.ready()
  fleet.submit()
  fleet.submit(ask('m2'))
  await fleet.clock.advance(60_000)
  expect(runningModels(fleet)).toEqual(['m'])

  await answerAll(fleet)
  expect(runningModels(fleet)).toEqual(['m2'])
})

test('BL-C02 a report that began before a model was pushed out does not bring it back', async () => {
  const fleet = host({ a: loader([ready('m')], { maxResident: 1 }) })
  await fleet.ready()
  let tell = () => {}
  const report = fleet.gateway.report.bind(fleet.gateway)
  fleet.gateway.report = () =>
    new Promise((resolve) => {
      tell = () => resolve(loader([ready('m')], { maxResident: 1 }))
    })
  await fleet.clock.advance(2_000)
  fleet.submit(ask('m2'))
  await fleet.clock.advance(0)
  expect(fleet.gateway.loads).toMatchObject([{ model: 'm2', options: { evicts: ['m'] } }])

  fleet.gateway.report = report
  fleet.gateway.reports.set('a', loader([ready('m2')], { maxResident: 1 }))
  tell()
  await fleet.clock.advance(0)
  fleet.submit()
  await fleet.clock.advance(1_000)
  expect(runningModels(fleet)).toEqual([])
  fleet.gateway.loads.shift()?.done()
  await fleet.clock.advance(1_500)

  expect(runningModels(fleet)).toEqual(['m2'])
})
