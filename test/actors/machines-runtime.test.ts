import { expect, test } from 'bun:test'
import { runtimeChart, runtimeLogic } from '../../actors/runtime.machine'
import type { NodeReport } from '../../src/domain/node'
import { NodeFault } from '../../src/ports/node-gateway'
import { alone } from '../support/alone'
import { resident, testNode } from '../support/host'
import { missing, walkOfChart, watch } from '../support/transitions'

const walk = walkOfChart(runtimeChart)
const load = { type: 'model.load', model: 'm', evicts: ['old'], cause: 'request', deadlineMs: 5_000 }

const begin = () => {
  const loads: { done: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = []
  const stage = alone(
    runtimeLogic,
    'runtime/a',
    {
      node: testNode('a'),
      ports: {
        load: (_node: unknown, _model: string, _options: unknown, signal: AbortSignal) =>
          new Promise<void>((done, fail) => loads.push({ done, fail, signal })),
        journal: { record: () => {} },
        now: () => stage.clock.now(),
      },
    },
    ['node/a'],
  )
  watch(stage.root, { runtime: walk })
  const runtime = stage.begin()
  const look = () =>
    runtime.getSnapshot() as { value: string; context: { node: unknown; resident: NodeReport['resident'] } }
  return {
    ...stage,
    runtime,
    loads,
    look,
    names: () => look().context.resident.map(({ name }) => name),
    toDispatcher: () => stage.sent.filter(({ to }) => to === 'dispatcher').map(({ event }) => event),
  }
}
const observed = (model: string, startedAt = 0) => ({ type: 'runtime.observed', report: resident(model), startedAt })

test('takes over what a report shows, and forgets it when the node is gone', () => {
  const { runtime, names } = begin()
  runtime.send(observed('old'))
  expect(names()).toEqual(['old'])
  runtime.send({ type: 'runtime.forget' })
  expect(names()).toEqual([])
})

test('loads one model at a time, evicting first; what it loaded outlives a report that began before', async () => {
  const { runtime, loads, look, names, toDispatcher, clock } = begin()
  runtime.send(observed('old'))
  runtime.send(load)
  expect([look().value, names()]).toEqual(['loading', []])
  runtime.send({ ...load, model: 'other' })
  expect(toDispatcher()).toMatchObject([{ type: 'load.failed', model: 'other' }])
  const pollBegan = clock.now()
  await clock.advance(100)
  loads[0]?.done()
  await clock.advance(0)

  expect(toDispatcher().at(-1)).toEqual({ type: 'load.finished', node: 'a', model: 'm', tookMs: 100 })
  runtime.send(observed('third', pollBegan))
  expect([look().value, names()]).toEqual(['steady', ['third', 'm']])
  runtime.send(observed('third', clock.now() + 1))
  expect(names()).toEqual(['third'])
})

test('a load that fails, or takes too long, is told; the late one is aborted', async () => {
  const failing = begin()
  failing.runtime.send(load)
  failing.runtime.send(observed('x'))
  failing.loads[0]?.fail(new Error('no memory'))
  await failing.clock.advance(0)
  expect(failing.toDispatcher()).toMatchObject([{ type: 'load.failed', message: 'no memory' }])

  const late = begin()
  late.runtime.send(load)
  await late.clock.advance(5_000)
  expect(late.toDispatcher()).toMatchObject([{ type: 'load.failed', model: 'm' }])
  expect([late.look().value, late.loads[0]?.signal.aborted]).toEqual(['steady', true])
})

test('a load that could not even be asked for says so, to the node as well', async () => {
  const { runtime, loads, toDispatcher, clock, sent } = begin()
  runtime.send(load)
  loads[0]?.fail(new NodeFault({ class: 'connect', message: 'refused', bytes: 0, elapsedMs: 1 }))
  await clock.advance(0)

  expect(toDispatcher()).toMatchObject([{ type: 'load.failed', message: 'refused', unsent: 'connect' }])
  const toNode = sent.filter(({ to }) => to === 'node/a').map(({ event }) => event)
  expect(toNode).toMatchObject([{ type: 'attempt.failed', failure: { class: 'connect' } }])
})

test('another description of the node holds for the next load', () => {
  const { runtime, look } = begin()
  runtime.send({ type: 'runtime.configure', node: testNode('a', { url: 'http://elsewhere' }) })
  expect(look().context.node).toMatchObject({ url: 'http://elsewhere' })
})

test('every transition of the runtime was taken', () => {
  expect(missing('runtime', walk)).toEqual([])
})
